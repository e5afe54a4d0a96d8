// SPDX-License-Identifier: Apache-2.0
// Budgets that limit a cost: the number of tokens whose cache comes closest to the limit from below. Costs follow from
// footprints and entries alone; the search never evaluates an answer.
#pragma once

#include <functional>

#include <kvbench/core/budget.hpp>
#include <kvbench/replay/answer/configuration_run.hpp>

namespace kvbench::replay {

/// The cost of a cache after the last query, relative to the exact cache of the same tokens, over all heads of a work
/// item.
double cost_share(CostKind cost, std::unique_ptr<methods::LayerCache> cache, ConfigurationRun::Options options,
                  std::span<const Head> heads, Backend& backend);

/// The largest number of tokens in [1, most] found whose cost does not exceed `limit`. cost(tokens) should not
/// decrease; it may throw Infeasible where the method cannot keep so few. The search starts at `guess`, continues with
/// linear interpolation, and ends where one more token would exceed the limit. Throws Infeasible with the smallest cost
/// where every number exceeds the limit.
Index largest_within(double limit, Index guess, Index most, const std::function<double(Index tokens)>& cost);

/// For methods whose cost is not searched (MethodInfo::at_budget): makes configurations infeasible whose cost over all
/// heads of a prompt exceeds the limit of their budget. The others get the mean number of entries that answer a query
/// as their budget in tokens.
void check_given_costs(const ReplayRequest& request, ReplayResults& results);

}  // namespace kvbench::replay
