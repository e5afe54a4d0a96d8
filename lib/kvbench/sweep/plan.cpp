// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/plan.hpp>

#include <algorithm>
#include <map>

#include <kvbench/replay/plan/calibration.hpp>
#include <kvbench/sweep/expand.hpp>

namespace kvbench::sweep {
namespace {

using namespace config;

/// Opens each trace and each calibration text once, even if several runs use it.
class Traces {
 public:
  Traces() = default;
  /// Every trace is this one.
  explicit Traces(std::shared_ptr<const trace::Reader> only) : only_(std::move(only)) {}

  std::shared_ptr<const trace::Reader> open(const TraceChoice& choice) {
    if (only_) return only_;
    auto& reader = readers_[choice.path];
    if (!reader) reader = with_place(choice.place, [&] { return std::make_shared<const trace::Reader>(choice.path); });
    return reader;
  }

  const Calibration& calibration(const std::string& text) {
    const auto known = calibrations_.find(text);
    return known != calibrations_.end() ? known->second : calibrations_.emplace(text, open_calibration(text)).first->second;
  }

 private:
  std::shared_ptr<const trace::Reader> only_;
  std::map<std::string, Calibration> calibrations_;
  std::map<std::string, std::shared_ptr<const trace::Reader>> readers_;
};

SweepStep plan_step(const SweepRun& run, std::size_t index, const Pass& pass, const RunOptions& options, Traces& traces) {
  SweepStep step{.run = index, .reader = traces.open(pass.trace), .request = pass.request, .options = options};
  step.options.backend = pass.backend;
  in_terms_of(run, where(run, step), [&] {
    if (!run.calibrate.empty()) step.request.calibration = traces.calibration(run.calibrate);
    if (!step.request.methods.empty()) {
      step.replay = make_plan(step.reader->info(), step.request);
      check_calibration(*step.reader, step.replay, step.request);
    }
    if (!run.measures.empty()) step.measured = select_heads(step.reader->info(), step.request);
  });
  return step;
}

SweepPlan plan_with(Traces traces, config::Sweep sweep, const RunOptions& options) {
  SweepPlan plan{.sweep = std::move(sweep), .steps = {}};
  for (std::size_t r = 0; r < plan.sweep.runs.size(); ++r) {
    const config::SweepRun& run = plan.sweep.runs[r];
    if (run.traces.empty()) {
      config::fail_at(run.place,
                      "run '{}' has no traces; name some with the key 'traces', or give all runs the same ones with `traces`",
                      run.name);
    }
    for (const Pass& pass : expand(run, options.backend)) {
      SweepStep step = plan_step(run, r, pass, options, traces);
      // Measures depend on the trace alone: of several passes over the same heads only the first one measures.
      const auto measured_too = [&](const SweepStep& other) {
        return other.run == r && other.reader == step.reader && other.measured == step.measured;
      };
      if (std::ranges::any_of(plan.steps, measured_too)) step.measured.clear();
      plan.steps.push_back(std::move(step));
    }
  }
  return plan;
}

}  // namespace

std::string where(const config::SweepRun& run, const SweepStep& step) {
  return fmt::format("run '{}' on {}", run.name, step.reader->path());
}

SweepPlan plan_sweep(config::Sweep sweep, const RunOptions& options) { return plan_with(Traces(), std::move(sweep), options); }

SweepPlan plan_sweep(config::Sweep sweep, const RunOptions& options, std::shared_ptr<const trace::Reader> trace) {
  use_traces(sweep, {trace->path()}, trace->path());
  return plan_with(Traces(std::move(trace)), std::move(sweep), options);
}

bool has_replays(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const config::SweepRun& run) { return !run.request.methods.empty(); });
}

bool has_measures(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const config::SweepRun& run) { return !run.measures.empty(); });
}

}  // namespace kvbench::sweep
