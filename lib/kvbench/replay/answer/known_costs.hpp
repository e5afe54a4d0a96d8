// SPDX-License-Identifier: Apache-2.0
// What caches cost, shared by the work items of a replay: the budget of a method whose bytes do not depend on the head
// (methods::Properties::equal_bytes) is searched once per shape.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench::replay {

/// Of the work items of one request and one model. May be used by several threads.
class KnownCosts {
 public:
  /// All from which the cost follows, beside what such work items have in common.
  struct Key {
    const methods::MethodInfo* method = nullptr;
    std::string params;
    CostKind cost = CostKind::memory;
    Index budget = 0;  ///< tokens of the cache, or a level
    std::size_t heads = 0;
    bool decode = false;  ///< decoded tokens are appended
    Index context = 0, protect_first = 0, protect_last = 0, window = 0;
    std::vector<std::int32_t> observed, evaluated;  ///< positions of queries
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  std::optional<double> find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = costs_.find(key);
    return found == costs_.end() ? std::nullopt : std::optional(found->second);
  }

  /// The cost at this key; compute() where it is not known yet. Threads that ask at the same time compute the same: it
  /// is a function of the key, so that no row depends on the rows beside it, or on which thread came first.
  template <class F>
  double at(const Key& key, F compute) {
    if (const auto known = find(key)) return *known;
    const double cost = compute();
    const std::lock_guard lock(mutex_);
    return costs_.try_emplace(key, cost).first->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Key, double> costs_;
};

}  // namespace kvbench::replay
