// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/plan.hpp>

#include <algorithm>
#include <map>

namespace kvbench::sweep {
namespace {

using namespace config;

/// Each trace is opened once, however many runs use it.
class Traces {
 public:
  std::shared_ptr<const trace::Reader> open(const TraceChoice& choice) {
    auto& reader = readers_[choice.path];
    if (!reader) reader = with_place(choice.place, [&] { return std::make_shared<const trace::Reader>(choice.path); });
    return reader;
  }

 private:
  std::map<std::string, std::shared_ptr<const trace::Reader>> readers_;
};

SweepStep plan_step(const SweepRun& run, std::size_t index, std::shared_ptr<const trace::Reader> reader) {
  SweepStep step{.run = index, .reader = std::move(reader), .request = run.request};
  try {
    if (!step.request.methods.empty()) step.replay = make_plan(step.reader->info(), step.request);
    if (!run.measures.empty()) step.measured = select_heads(step.reader->info(), step.request);
  } catch (const Error& error) {
    fail_at(run.place, "run '{}' on {}: {}", run.name, step.reader->path(), error.what());
  }
  return step;
}

}  // namespace

SweepPlan plan_sweep(config::Sweep sweep) {
  SweepPlan plan{.sweep = std::move(sweep), .steps = {}};
  Traces traces;
  for (std::size_t r = 0; r < plan.sweep.runs.size(); ++r) {
    const config::SweepRun& run = plan.sweep.runs[r];
    if (run.traces.empty()) {
      config::fail_at(run.place, "run '{}' has no traces; name some with the key 'traces', or with --trace", run.name);
    }
    for (const config::TraceChoice& trace : run.traces) plan.steps.push_back(plan_step(run, r, traces.open(trace)));
  }
  return plan;
}

bool has_replays(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const config::SweepRun& run) { return !run.request.methods.empty(); });
}

bool has_measures(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const config::SweepRun& run) { return !run.measures.empty(); });
}

}  // namespace kvbench::sweep
