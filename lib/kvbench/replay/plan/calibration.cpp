// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/calibration.hpp>

#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::replay {
namespace {

std::string shape_of(const trace::TraceInfo& info) {
  return fmt::format("{} layers, {} query heads on {} kv heads, and {} and {} dimensions of keys and values",
                     info.num_layers, info.num_query_heads, info.num_kv_heads, info.head_dim, info.value_dim);
}

void check_layers(const trace::PromptInfo& prompt, const ReplayPlan& plan, const std::string& name) {
  for (const PromptPlan& evaluated : plan.prompts) {
    for (const std::int64_t layer : evaluated.layers) {
      if (std::ranges::find(prompt.layers, layer, &trace::LayerInfo::layer) != prompt.layers.end()) continue;
      throw Error("`calibration`: {} has no layer {}; dump it with the layers that are replayed, or choose `layers`",
                  name, layer);
    }
  }
}

std::vector<float> first_keys(const trace::Reader& reader, std::size_t prompt, std::int64_t layer) {
  const trace::PromptInfo& of = reader.info().prompts[prompt];
  const auto at = std::ranges::find(of.layers, layer, &trace::LayerInfo::layer);
  return reader.read_head(of, *at, trace::Array::keys, 0);
}

/// Two texts are the same if one begins with the other: then the keys of their common tokens are equal, whichever files
/// hold them.
void check_other_text(const trace::Reader& evaluated, const ReplayPlan& plan, const Calibration& calibration) {
  for (const PromptPlan& prompt : plan.prompts) {
    if (prompt.layers.empty()) continue;
    const std::vector<float> a = first_keys(evaluated, prompt.prompt, prompt.layers.front()),
                             b = first_keys(*calibration.trace, calibration.prompt, prompt.layers.front());
    const auto common = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
    if (!std::equal(a.begin(), a.begin() + common, b.begin())) continue;
    throw Error(
        "`calibration`: {} is the text of the evaluated prompt '{}', and a method calibrated on it would look better "
        "than it is; name another text, or evaluate other `prompts`",
        calibration.text(), evaluated.info().prompts[prompt.prompt].id);
  }
}

}  // namespace

std::string Calibration::text() const {
  return fmt::format("{}, prompt '{}'", std::filesystem::path(trace->path()).filename().string(),
                     trace->info().prompts[prompt].id);
}

Calibration open_calibration(const std::string& text) {
  std::error_code none;
  const std::size_t colon = std::filesystem::exists(text, none) ? text.npos : text.rfind(':');
  const auto reader = std::make_shared<const trace::Reader>(text.substr(0, colon));
  if (colon == text.npos) return {reader, 0};
  const auto& prompts = reader->info().prompts;
  const std::string id = text.substr(colon + 1);
  const auto found = std::ranges::find(prompts, id, &trace::PromptInfo::id);
  if (found != prompts.end()) return {reader, static_cast<std::size_t>(found - prompts.begin())};
  std::vector<std::string> known;
  for (const trace::PromptInfo& prompt : prompts) known.push_back(prompt.id);
  throw Error("`calibration`: {} has no prompt '{}'.{} It has: {}", reader->path(), id, did_you_mean(id, known),
              listed(known));
}

void check_calibration(const trace::Reader& evaluated, const ReplayPlan& plan, const ReplayRequest& request) {
  if (!request.calibration) return;
  if (std::ranges::none_of(request.methods, [](const MethodChoice& m) { return m.info->calibrates(); })) {
    std::vector<std::string> names;
    for (const methods::MethodInfo& method : methods::all_methods()) {
      if (method.calibrates()) names.push_back(method.name);
    }
    throw Error("`calibration` is given, but no method that is replayed calibrates; those that do: {}",
                fmt::join(names, ", "));
  }
  const trace::TraceInfo& other = request.calibration->trace->info();
  const std::string wanted = shape_of(evaluated.info()), shape = shape_of(other);
  if (shape != wanted) {
    throw Error(
        "`calibration`: {} is of a model with {}; the evaluated trace has {}. Dump another text with the same model",
        request.calibration->text(), shape, wanted);
  }
  if (other.model != evaluated.info().model) {
    throw Error(
        "`calibration`: {} is of the model '{}'; the evaluated trace is of '{}'. Dump another text with the same model",
        request.calibration->text(), other.model, evaluated.info().model);
  }
  check_layers(other.prompts[request.calibration->prompt], plan, request.calibration->text());
  check_other_text(evaluated, plan, *request.calibration);
}

}  // namespace kvbench::replay
