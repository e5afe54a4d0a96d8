// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace kvbench::replay {

/// What caches cost whose bytes follow from the shapes (methods::Properties::equal_bytes), by text that holds all from
/// which they follow. Shared by the work items of one request and model, and by threads.
class KnownCosts {
 public:
  std::optional<double> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = costs_.find(key);
    return found == costs_.end() ? std::nullopt : std::optional(found->second);
  }

  /// compute() where the cost is not known. Threads that ask at the same time compute the same: it is a function of the
  /// key, so that no row depends on the rows beside it, or on which thread came first.
  template <class F>
  double at(const std::string& key, F compute) {
    if (const auto known = find(key)) return *known;
    const double cost = compute();
    const std::lock_guard lock(mutex_);
    return costs_.try_emplace(key, cost).first->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double> costs_;
};

}  // namespace kvbench::replay
