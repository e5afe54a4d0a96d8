// SPDX-License-Identifier: Apache-2.0
// A sweep resolved against its traces. Every error that can be found without computing is found here.
// A part of a sweep: work items to replay and heads to measure, in the order of the plan.
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

/// Part `index` (from 1) of `count`.
struct Shard {
  std::size_t index = 1, count = 1;
  /// "3/8". Throws Error, which names the field `shard`.
  static Shard parse(const std::string& text);
};

/// The part of one step that a shard computes.
struct StepWork {
  std::vector<std::size_t> work_items;  ///< indices into SweepStep::replay.work_items
  std::vector<std::size_t> measured;    ///< indices into SweepStep::measured
};

/// The share of a work item in the work of a sweep: tokens times configurations.
double weight_of(const SweepStep& step, const replay::WorkItem& item);

/// The work of a shard, one entry per step. The list of all work is divided into consecutive parts of about equal
/// weight (tokens times configurations), so that a shard reads few traces. The division depends on the plan alone, and
/// every work item is in exactly one shard.
std::vector<StepWork> select_work(const SweepPlan& plan, const Shard& shard);

}  // namespace kvbench::sweep
