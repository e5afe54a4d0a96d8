// SPDX-License-Identifier: Apache-2.0
// Budgets that limit a cost: the number of tokens whose cache comes closest to the limit from below. Costs follow from
// footprints and entries alone; the search evaluates no answers but those that a method observes.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <kvbench/core/budget.hpp>
#include <kvbench/replay/answer/configuration_run.hpp>

namespace kvbench::replay {

/// The cost of the caches of a work item after the last query, relative to the exact caches of the same tokens. Neither
/// counts `outside`, bytes of tokens in each kv head that are kept outside the budget (outside_bytes()).
double cost_share(CostKind cost, methods::Caches caches, ConfigurationRun::Options options, double outside,
                  std::span<const Head> heads, Backend& backend);

/// The same of caches that have answered their last query, by their results.
double cost_share(CostKind cost, double outside, std::span<ConfigurationResult* const> results);

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

/// What a long cache of keys [n, d] and values [n, dv] holds with these codecs: how many rows are encoded, and their
/// bytes, of keys and of values. Layers for which it is equal cost the same.
using StoredBytes = std::array<double, 4>;
StoredBytes stored_bytes(const methods::Codecs& codecs, Index d, Index dv);

/// The largest number of tokens in [1, most] found whose cost does not exceed `limit`. cost(tokens) should not
/// decrease; it may throw Infeasible where the method cannot keep so few, or so many. The search starts at `guess`,
/// continues with linear interpolation, and ends where one more token would exceed the limit. Throws Infeasible with
/// the smallest cost where every number exceeds the limit.
/// The same for other integers than tokens: describe(integer) is a clause such as "at 4 bits".
Index largest_within(
    double limit, Index guess, Index most, const std::function<double(Index tokens)>& cost,
    const std::function<std::string(Index tokens)>& describe = [](Index tokens) {
      return fmt::format("with {} token{}", tokens, tokens == 1 ? "" : "s");
    });

}  // namespace kvbench::replay
