// SPDX-License-Identifier: Apache-2.0
// What a plan of layers names in a kv head of a layer.
#pragma once

#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// The plan that a method is; null where it is none.
const methods::LayerPlan* plan_of(const MethodChoice& method);

/// The line of the plan `choice` for a layer and kv head. Throws methods::Infeasible where it was not made for this
/// budget.
LayerChoice planned_choice(const MethodChoice& choice, const Budget& budget, std::int64_t layer, Index kv_head);

/// Throws Error where a plan was made for another model, names no method of a layer that is replayed or other kv heads
/// than it has, or is asked beside `dense_layers`.
void check_plans(const trace::TraceInfo& trace, const ReplayRequest& request);

}  // namespace kvbench::replay
