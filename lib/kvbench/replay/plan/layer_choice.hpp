// SPDX-License-Identifier: Apache-2.0
// What a configuration runs in a kv head of a layer: the same method in all of them, or what a plan names there.
#pragma once

#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// The plan that a method is; null where it is none.
const methods::LayerPlan* plan_of(const MethodChoice& method);

/// Whether two choices compute the same: refits differ in what is measured of it.
bool same(const MethodChoice& a, const MethodChoice& b);

struct LayerChoice {
  MethodChoice method;
  Budget budget;
  bool of_layer = false;  ///< the budget is that of this place alone, which shares it with no other layer
};

/// Whether the request keeps this layer of the model exactly, without a method.
inline bool keeps_whole(const ReplayRequest& request, std::int64_t layer) { return layer < request.dense_layers; }

/// `layer`: number in the model. Throws methods::Infeasible where a plan was not made for the budget of the
/// configuration.
LayerChoice choice_at(const ReplayRequest& request, const Configuration& configuration, std::int64_t layer,
                      Index kv_head);

/// Throws Error where a plan was made for another model, names no method of a layer that is replayed or other kv heads
/// than it has, or is asked beside `dense_layers`.
void check_plans(const trace::TraceInfo& trace, const ReplayRequest& request);

}  // namespace kvbench::replay
