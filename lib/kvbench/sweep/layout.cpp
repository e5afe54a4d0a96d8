// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/layout.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/store/parameter_files.hpp>
#include <kvbench/sweep/plan.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::sweep {
namespace {

/// What the results of all cells of a step depend on beside method and place. RunOptions count through device and
/// instruction set alone: threads and memory change no bit.
std::string settings_text(const StepLayout& step, const replay::ReplayRequest& r, const replay::PromptPlan& prompt) {
  return fmt::format(
      "{} {} {} {} {} {} {} {} context {} base {} protect {},{},{} dense {} sinks {} standalone {} element {}",
      version(), commit(), step.frame.sha256, step.frame.device, step.frame.isa, name_of(prompt.protocol),
      static_cast<int>(r.decoded), prompt.tokens, prompt.context, prompt.base, prompt.protect_first,
      prompt.protect_last, r.protect_outside, r.dense_layers, r.recall_sinks, r.standalone,
      static_cast<int>(r.kv_element));
}

/// Every method with its parameters, the content of the files that they name, its budgets and its seeds.
std::vector<std::string> method_texts(const replay::ReplayFrame& frame) {
  std::vector<std::string> texts;
  for (const replay::ReplayFrame::Method& m : frame.methods)
    texts.push_back(fmt::format("method {} [{}]{}", m.name, m.params, store::parameter_digests(m.params)));
  for (const replay::Configuration& cell : frame.configurations)
    texts[cell.method] += fmt::format(" {}:{}", frame.budgets[cell.budget], cell.seed);
  return texts;
}

/// A method that divides its budget among layers meets a limit of a cost over all layers that are replayed.
std::string other_layers(const SweepStep& step, const replay::WorkItem& item, std::size_t method) {
  const replay::ReplayRequest& request = step.request;
  const bool limits =
      std::ranges::any_of(request.budgets, [](const Budget& budget) { return budget.cost().has_value(); });
  if (!limits || !request.methods[method].info->plan) return "";
  return fmt::format(" layers {}", fmt::join(item.prompt.layers, ","));
}

/// What the method was calibrated on.
std::string calibration_text(const replay::ReplayRequest& request, std::size_t method) {
  if (!request.calibration || !request.methods[method].info->calibrates) return "";
  const trace::Reader& other = *request.calibration->trace;
  return fmt::format(" calibrated {} {}", other.sha256(), other.info().prompts[request.calibration->prompt].id);
}

std::string digest(const std::string& text) { return trace::Sha256().add(text).hex(); }

void add_replay(StepLayout& layout, const SweepStep& step) {
  const trace::TraceInfo& trace = step.reader->info();
  const replay::ReplayPlan& plan = step.replay;
  for (std::size_t h = 0; h < plan.heads.size(); ++h) {
    layout.heads.push_back(empty_head(trace, plan, h));
    layout.heads.back().cells.clear();
  }
  const std::vector<std::string> methods = method_texts(layout.frame);
  for (const replay::WorkItem& item : plan.work_items) {
    const std::string place =
        fmt::format("{} prompt {} layer {} heads {}", settings_text(layout, step.request, item.prompt),
                    trace.prompts[item.prompt.prompt].id, trace.prompts[item.prompt.prompt].layers[item.layer].layer,
                    fmt::join(item.kv_heads, ","));
    std::vector<std::uint32_t> heads;
    for (std::size_t h = 0; h < item.kv_heads.size(); ++h)
      heads.push_back(static_cast<std::uint32_t>(item.first_result + h));
    for (const std::size_t method : item.methods) {
      const std::string key = fmt::format("{} {}{}{}", place, methods[method], other_layers(step, item, method),
                                          calibration_text(step.request, method));
      layout.cells.push_back({digest(key), static_cast<std::uint32_t>(method), heads});
    }
  }
}

void add_measures(StepLayout& layout, const SweepStep& step, const std::vector<bounds::Measure>& measures) {
  const trace::TraceInfo& trace = step.reader->info();
  std::string names;
  for (const bounds::Measure measure : measures) names += fmt::format(" {}", name_of(measure));
  for (const replay::HeadPlace& place : step.measured) {
    const trace::PromptInfo& prompt = trace.prompts[place.prompt];
    const std::int64_t layer = prompt.layers[place.layer].layer;
    layout.measures.push_back({digest(fmt::format("{} {} {} prompt {} layer {} head {} measures{}", version(), commit(),
                                                  layout.frame.sha256, prompt.id, layer, place.kv_head, names)),
                               0,
                               {static_cast<std::uint32_t>(layout.measured.size())}});
    layout.measured.push_back({.place = place, .layer = layer});
  }
}

}  // namespace

SweepLayout layout_of(const SweepPlan& plan) {
  SweepLayout layout{plan.sweep.name, std::string(version()), std::string(commit()), {}, {}};
  for (const SweepStep& step : plan.steps) {
    const config::SweepRun& run = plan.sweep.runs[step.run];
    StepLayout out{.run = run.name, .frame = replay_frame(*step.reader, step.replay, step.request, step.options)};
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
