// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/sweep_run.hpp>

#include <kvbench/replay/replay.hpp>

namespace kvbench::config {
namespace {

/// Progress of one part as progress of the whole.
class Parts {
 public:
  Parts(const SweepPlan& plan, const ReplayHooks& hooks) : hooks_(hooks) {
    for (const SweepStep& step : plan.steps) total_ += static_cast<Index>(step.replay.units.size() + step.measured_heads);
  }

  /// Hooks of the next part, which has this many units.
  ReplayHooks next(std::size_t units) {
    ReplayHooks part{.note = hooks_.note, .stop = hooks_.stop};
    if (hooks_.progress) {
      part.progress = [this, before = before_](Index done, Index) { hooks_.progress(before + done, total_); };
    }
    before_ += static_cast<Index>(units);
    return part;
  }

 private:
  const ReplayHooks& hooks_;
  Index before_ = 0, total_ = 0;
};

}  // namespace

SweepResults run_sweep(const SweepPlan& plan, Grain grain, const ReplayHooks& hooks) {
  SweepResults results;
  Parts parts(plan, hooks);
  for (const SweepStep& step : plan.steps) {
    const SweepRun& run = plan.sweep.runs[step.run];
    if (!run.request.methods.empty()) {
      const ReplayResults replayed = replay(*step.reader, run.request, parts.next(step.replay.units.size()));
      for (Record& record : summarize(replayed, grain)) {
        record.run = run.name;
        results.records.push_back(std::move(record));
      }
    }
    if (!run.measures.empty()) {
      for (MeasureRow& row : measure_trace(*step.reader, run.request, run.measures, parts.next(step.measured_heads))) {
        row.run = run.name;
        results.measures.push_back(std::move(row));
      }
    }
  }
  return results;
}

}  // namespace kvbench::config
