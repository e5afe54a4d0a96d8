// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/config/sweep_plan.hpp>
#include <kvbench/replay/record.hpp>

namespace kvbench::config {

struct SweepResults {
  std::vector<Record> records;  ///< of all runs in order; Record::run names them
  std::vector<MeasureRow> measures;
};

/// Runs all steps in order. hooks.progress counts units of the whole sweep. Throws as replay() does.
SweepResults run_sweep(const SweepPlan& plan, Grain grain, const ReplayHooks& hooks = {});

}  // namespace kvbench::config
