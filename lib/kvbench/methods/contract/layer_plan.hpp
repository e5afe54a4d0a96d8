// SPDX-License-Identifier: Apache-2.0
// A plan: a method that is another one in each layer of a model, at a budget of the layer. Its name is plan:FILE.toml,
// and its parameters are what the file says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

struct MethodInfo;

/// The method of a layer, and what it may keep there.
struct LayerMethod {
  const MethodInfo* info = nullptr;  ///< no plan itself, and none that divides its budget among layers
  Params params;
  Budget budget;  ///< limits the memory of this layer
};

/// The methods of all layers at a budget of the model: the mean of those of its layers.
struct PlannedBudget {
  Budget budget;
  std::map<std::int64_t, LayerMethod> layers;  ///< by number of the layer in the model
};

inline constexpr std::string_view plan_prefix = "plan:";
/// Whether this is the name of a plan, and the path of its file.
inline bool is_plan(std::string_view name) { return name.starts_with(plan_prefix); }
inline std::string plan_path(std::string_view name) { return std::string(name.substr(plan_prefix.size())); }

/// The parameters of a plan.
struct LayerPlan {
  std::string model;              ///< name of the model that it was made for
  std::int64_t model_layers = 0;  ///< number of layers of this model
  std::vector<PlannedBudget> budgets;
};

}  // namespace kvbench::methods
