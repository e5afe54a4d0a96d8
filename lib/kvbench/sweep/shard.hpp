// SPDX-License-Identifier: Apache-2.0
// A part of a sweep's work: units of replays and heads to measure, in the order of the plan.
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

/// What a shard computes of one step.
struct StepWork {
  std::vector<std::size_t> units;     ///< indices into SweepStep::replay.units
  std::vector<std::size_t> measured;  ///< indices into SweepStep::measured
};

/// The work of a shard, one item a step. The whole list is cut into consecutive parts of about equal weight (tokens times
/// configurations), so that a shard reads few traces; it depends on the plan alone, and each item is in exactly one shard.
std::vector<StepWork> select_work(const SweepPlan& plan, const Shard& shard);

}  // namespace kvbench::sweep
