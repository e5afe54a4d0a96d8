// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/layer_choice.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/contract/method_name.hpp>

namespace kvbench::replay {
namespace {

using methods::LayerPlan;
using methods::PlannedBudget;

/// Whether the end of a model's name in lower case says only in which format its weights are stored: q4_k_m, iq2_xs,
/// f16, bf16.
bool is_format(std::string_view name) {
  if (name == "f16" || name == "f32" || name == "bf16") return true;
  if (name.starts_with('i')) name.remove_prefix(1);
  return name.size() > 1 && name[0] == 'q' && name[1] >= '0' && name[1] <= '9';
}

/// The name of a model without the folder or organisation before it and the format of its weights behind it, in lower
/// case: "smollm2-135m" of "HuggingFaceTB/SmolLM2-135M" and of "SmolLM2-135M.Q4_1.gguf".
std::string plain_name(std::string_view model) {
  model = model.substr(model.find_last_of('/') + 1);
  if (model.ends_with(".gguf")) model.remove_suffix(5);
  std::string name(model);
  std::ranges::transform(name, name.begin(), lower_case);
  const std::size_t end = name.find_last_of(".-");
  if (end != name.npos && is_format(std::string_view(name).substr(end + 1))) name.resize(end);
  return name;
}

void check_model(const std::string& name, const LayerPlan& plan, const trace::TraceInfo& trace) {
  if (!trace.model.empty() && plain_name(plan.model) != plain_name(trace.model))
    throw Error("{}: the plan was made for the model {}, and this one is {}; make one with kvbench allocate", name,
                plan.model, trace.model);
  if (plan.model_layers != trace.num_layers)
    throw Error("{}: the plan was made for a model of {} layers, and this one has {}; make one with kvbench allocate",
                name, plan.model_layers, trace.num_layers);
}

/// Throws Error where a layer in which methods run has neither one line in the plan nor one for each of its kv heads.
void check_layers(const std::string& name, const PlannedBudget& plan, const trace::TraceInfo& trace) {
  for (const trace::PromptInfo& prompt : trace.prompts) {
    for (const trace::LayerInfo& layer : prompt.layers) {
      if (!layer.has_methods() || plan.lines.contains({layer.layer})) continue;
      const Index lines = plan.lines_of(layer.layer);
      if (lines == 0)
        throw Error(
            "{}: the plan for {} has no line for layer {}; make one with kvbench allocate, from a trace of all layers",
            name, plan.budget.text(), layer.layer);
      bool each = lines == trace.num_kv_heads;
      for (Index head = 0; head < trace.num_kv_heads; ++head) each &= plan.at(layer.layer, head) != nullptr;
      if (!each)
        throw Error(
            "{}: in the plan for {} layer {} has other lines than one for each of the kv heads 0 to {} of the model; "
            "make one with kvbench allocate --by head",
            name, plan.budget.text(), layer.layer, trace.num_kv_heads - 1);
    }
  }
}

}  // namespace

const LayerPlan* plan_of(const MethodChoice& method) {
  return methods::is_plan(method.info->name) ? &method.params.as<LayerPlan>() : nullptr;
}

LayerChoice planned_choice(const MethodChoice& choice, const Budget& budget, std::int64_t layer, Index kv_head) {
  const LayerPlan* plan = plan_of(choice);
  const auto planned = std::ranges::find(plan->budgets, budget, &PlannedBudget::budget);
  if (planned == plan->budgets.end()) {
    std::vector<std::string> made;
    for (const PlannedBudget& other : plan->budgets) made.push_back(other.budget.text());
    const bool planned_for = budget.cost() == CostKind::memory;  // plans divide nothing else
    throw methods::Infeasible(
        fmt::format("the plan was made for {}, not for {}; use --budget {}{}", fmt::join(made, ", "), budget.text(),
                    fmt::join(made, ","),
                    planned_for ? fmt::format(", or make one for {} with kvbench allocate", budget.text()) : ""));
  }
  const methods::LayerMethod* const line = planned->at(layer, kv_head);
  if (line == nullptr)  // a layer in which no method runs, but `exact`
    throw methods::Unavailable(fmt::format("the plan has no method for layer {}", layer));
  return {{line->info, line->params}, line->budget, true};
}

void check_plans(const trace::TraceInfo& trace, const ReplayRequest& request) {
  for (const MethodChoice& choice : request.methods) {
    const LayerPlan* plan = plan_of(choice);
    if (plan == nullptr) continue;
    if (request.dense_layers > 0)
      throw Error("`dense_layers` keeps layers whole, and {} says what each layer keeps; leave one of the two out",
                  choice.info->name);
    check_model(choice.info->name, *plan, trace);
    for (const PlannedBudget& planned : plan->budgets) check_layers(choice.info->name, planned, trace);
  }
}

}  // namespace kvbench::replay
