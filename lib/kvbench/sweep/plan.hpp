// SPDX-License-Identifier: Apache-2.0
// A sweep resolved against its traces. Every error that can be found without computing is found here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kvbench/config/sweep.hpp>
#include <kvbench/replay/plan/plan.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::sweep {

/// One run on one trace, with one protocol and device.
struct SweepStep {
  std::size_t run = 0;  ///< index into Sweep::runs
  std::shared_ptr<const trace::Reader> reader;
  replay::ReplayRequest request;
  replay::RunOptions options;
  replay::ReplayPlan replay;                ///< empty where the run only measures
  std::vector<replay::HeadPlace> measured;  ///< empty where it measures nothing
};

struct SweepPlan {
  config::Sweep sweep;
  std::vector<SweepStep> steps;  ///< in the order of runs, then traces, protocols, devices
};

/// "run 'a' on t.h5", for messages.
std::string where(const config::SweepRun& run, const SweepStep& step);

/// Opens all traces and plans all runs. `options` hold for every step; where a run names devices, these replace the
/// backend. Throws Error with the place of the value at fault where a trace is missing or bad, or cannot serve the run.
SweepPlan plan_sweep(config::Sweep sweep, const replay::RunOptions& options = {});
/// The same for a trace that is already open, in place of those that the runs name.
SweepPlan plan_sweep(config::Sweep sweep, const replay::RunOptions& options,
                     std::shared_ptr<const trace::Reader> trace);

bool has_replays(const SweepPlan& plan);
bool has_measures(const SweepPlan& plan);

/// The plan as text: runs, traces, layers, methods x budgets x seeds, number of results.
std::string describe(const SweepPlan& plan);

}  // namespace kvbench::sweep
