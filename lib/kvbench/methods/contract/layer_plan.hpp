// SPDX-License-Identifier: Apache-2.0
// A plan: a method that is another one in each layer of a model, or in each of its kv heads, at a budget of its own
// there. Its name is plan:FILE.toml, and its parameters are what the file says.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

struct MethodInfo;

/// What a line of a plan is about: a layer, or one kv head of it.
struct PlanPlace {
  static constexpr Index all_heads = -1;
  std::int64_t layer = 0;  ///< number in the model
  Index kv_head = all_heads;

  auto operator<=>(const PlanPlace&) const = default;
};

/// The method of a place, and what it may keep there.
struct LayerMethod {
  const MethodInfo* info = nullptr;  ///< no plan itself, and none that divides its budget among layers
  Params params;
  Budget budget;  ///< limits the memory of this layer or head
};

/// The methods of all layers at a budget of the model: the mean of those of its layers. A layer has one line, or one
/// for each of its kv heads.
struct PlannedBudget {
  Budget budget;
  std::map<PlanPlace, LayerMethod> lines;

  /// What runs in a kv head of a layer; null where no line is about it.
  const LayerMethod* at(std::int64_t layer, Index kv_head) const {
    for (const PlanPlace& place : {PlanPlace{layer, kv_head}, PlanPlace{layer}}) {
      if (const auto line = lines.find(place); line != lines.end()) return &line->second;
    }
    return nullptr;
  }
  /// Lines about a layer or its heads.
  std::ptrdiff_t lines_of(std::int64_t layer) const {
    return std::ranges::count_if(lines, [&](const auto& line) { return line.first.layer == layer; });
  }
};

/// The parameters of a plan.
struct LayerPlan {
  std::string model;              ///< name of the model that it was made for
  std::int64_t model_layers = 0;  ///< number of layers of this model
  std::vector<PlannedBudget> budgets;
};

}  // namespace kvbench::methods
