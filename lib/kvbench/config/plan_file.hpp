// SPDX-License-Identifier: Apache-2.0
// Plans: TOML files that name the method and the budget of each layer of a model, or of each kv head. The method
// `plan:FILE.toml` runs one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/methods/contract/method_name.hpp>

namespace kvbench::config {

/// The plan of this name, found by the name and the content of its file, which is read anew each time; its parameters
/// hold the first digits of the digest, so that rows and keys of an edited plan are others. Throws Error with the place
/// in the file for anything that is no plan. A methods::Definer, as it is for methods::find_method().
const methods::MethodInfo& find_plan(const methods::MethodName& name);

/// What readers alone need of a plan.
struct PlanNotes {
  std::optional<bool> confirmed;      ///< by held-out documents to do less damage than equal budgets; absent for those
  std::vector<std::string> settings;  ///< what one types in the engine that the plan is for
  std::vector<std::string> beside;    ///< sentences on other plans
};

/// What a plan was computed from.
struct PlanOrigin {
  std::string told;                 ///< lines at the top of the file, for readers
  std::vector<std::string> traces;  ///< SHA-256
  std::string path;                 ///< of the file, to whose folder files that methods name are relative
  std::vector<PlanNotes> notes;     ///< of each plan; none of those after the end of the list
};

/// The text of the file of a plan.
std::string plan_text(const methods::LayerPlan& plan, const PlanOrigin& origin);

}  // namespace kvbench::config
