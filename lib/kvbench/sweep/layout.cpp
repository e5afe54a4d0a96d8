// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/layout.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/sweep/key.hpp>
#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {
namespace {

/// The inputs of the cells of each method, without those that depend on the work item.
std::vector<CellInputs> inputs_of_methods(const replay::ReplayFrame& frame, const replay::ReplayRequest& request) {
  std::vector<CellInputs> methods;
  for (std::size_t m = 0; m < frame.methods.size(); ++m) {
    const replay::ReplayFrame::Method& method = frame.methods[m];
    CellInputs& inputs = methods.emplace_back();
    inputs.trace = frame.sha256, inputs.device = frame.device, inputs.isa = frame.isa;
    inputs.request = replay::stored_text(request);
    inputs.method = store::inputs_of(*request.methods[m].info, method.params);
    if (!request.calibration || !request.methods[m].info->calibrates()) continue;
    const trace::Reader& other = *request.calibration->trace;
    inputs.calibration_trace = other.sha256();
    inputs.calibration_prompt = other.info().prompts[request.calibration->prompt].id;
  }
  for (const replay::Configuration& configuration : frame.configurations) {
    methods[configuration.method].budgets.push_back(frame.budgets[configuration.budget].text());
    methods[configuration.method].seeds.push_back(configuration.seed);
  }
  return methods;
}

/// Whether the cells of a method depend on which layers are replayed.
bool depends_on_layers(const replay::ReplayRequest& request, std::size_t method) {
  const bool limits =
      std::ranges::any_of(request.budgets, [](const Budget& budget) { return budget.cost().has_value(); });
  return limits && request.methods[method].info->plan;
}

void set_place(CellInputs& inputs, const trace::TraceInfo& trace, const replay::WorkItem& item) {
  // All members of a plan, so that a new one is considered here. The bytes of a token follow from the trace and the
  // element type of the cache; `layers` count only where the results depend on them.
  const auto& [prompt, protocol, tokens, context, layers, base, token_bytes, protect_first, protect_last] = item.prompt;
  inputs.prompt = trace.prompts[prompt].id;
  inputs.protocol = protocol;
  inputs.tokens = tokens, inputs.context = context, inputs.base = base;
  inputs.protect_first = protect_first, inputs.protect_last = protect_last;
  inputs.layer = trace.prompts[prompt].layers[item.layer].layer;
  inputs.kv_heads = item.kv_heads;
}

void add_replay(StepLayout& layout, const SweepStep& step) {
  const trace::TraceInfo& trace = step.reader->info();
  const replay::ReplayPlan& plan = step.replay;
  for (std::size_t h = 0; h < plan.heads.size(); ++h) {
    layout.heads.push_back(empty_head(trace, plan, h));
    layout.heads.back().results.clear();
  }
  std::vector<CellInputs> methods = inputs_of_methods(layout.frame, step.request);
  for (const replay::WorkItem& item : plan.work_items) {
    std::vector<std::uint32_t> heads;
    for (std::size_t h = 0; h < item.kv_heads.size(); ++h)
      heads.push_back(static_cast<std::uint32_t>(item.first_result + h));
    for (const std::size_t method : item.methods) {
      CellInputs& inputs = methods[method];
      set_place(inputs, trace, item);
      if (depends_on_layers(step.request, method)) inputs.layers = item.prompt.layers;
      layout.cells.push_back({store::key_of(inputs), static_cast<std::uint32_t>(method), heads});
    }
  }
}

void add_measures(StepLayout& layout, const SweepStep& step, const std::vector<measures::Measure>& measures) {
  const trace::TraceInfo& trace = step.reader->info();
  std::vector<std::string> names;
  for (const measures::Measure measure : measures) names.emplace_back(name_of(measure));
  for (const replay::HeadPlace& place : step.measured) {
    const trace::PromptInfo& prompt = trace.prompts[place.prompt];
    const std::int64_t layer = prompt.layers[place.layer].layer;
    const MeasureInputs inputs{layout.frame.sha256, prompt.id, layer, place.kv_head, names};
    layout.measures.push_back({store::key_of(inputs), 0, {static_cast<std::uint32_t>(layout.measured.size())}});
    layout.measured.push_back({.place = place, .layer = layer});
  }
}

}  // namespace

SweepLayout layout_of(const SweepPlan& plan) {
  SweepLayout layout{plan.sweep.name, std::string(version()), std::string(commit()), {}, {}};
  std::vector<std::string> paths;
  for (const SweepStep& step : plan.steps) paths.push_back(step.reader->path());
  const std::vector<std::string> names = distinct_names(paths);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const SweepStep& step = plan.steps[s];
    const config::SweepRun& run = plan.sweep.runs[step.run];
    StepLayout out{.run = run.name, .frame = replay_frame(*step.reader, step.replay, step.request, step.options)};
    out.frame.trace = names[s];
    add_replay(out, step);
    add_measures(out, step, run.measures);
    layout.steps.push_back(std::move(out));
  }
  for (const config::Published& published : plan.sweep.published) layout.claims.push_back(published.claim);
  return layout;
}

std::string describe(const StepLayout& step, const CellEntry& cell, bool measure) {
  const std::vector<replay::HeadResult>& heads = measure ? step.measured : step.heads;
  const replay::HeadResult& first = heads[cell.heads.front()];
  std::vector<Index> kv_heads;
  for (const std::uint32_t h : cell.heads) kv_heads.push_back(heads[h].place.kv_head);
  std::string what = "measures";
  if (!measure) {
    const replay::ReplayFrame::Method& method = step.frame.methods[cell.method];
    what = compare::label_of({method.name, method.params, {}});
  }
  return fmt::format("{} on layer {}, kv head {} of prompt '{}' of {} (run '{}')", what, first.layer,
                     fmt::join(kv_heads, ", "), step.frame.prompts[first.place.prompt].id, step.frame.trace, step.run);
}

}  // namespace kvbench::sweep
