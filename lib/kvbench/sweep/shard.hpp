// SPDX-License-Identifier: Apache-2.0
// A part of a sweep: work items to replay and heads to measure, in the order of the plan.
#pragma once

#include <string>
#include <vector>

#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {

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
