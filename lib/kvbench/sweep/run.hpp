// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/sweep/cells_file.hpp>
#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {

/// The number of cells of a shard, and how many of them a file already holds.
struct Standing {
  std::size_t cells = 0, finished = 0;
};
Standing standing_of(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, const CellsFile& file);

/// Computes the cells of the shard that `file` does not hold, and appends those of a work item when it is done.
/// `layout` is layout_of(plan). hooks.progress counts work items. Throws as replay() does; cells that were appended
/// stay in the file.
void run_sweep(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, CellsFile& file,
               const replay::ReplayHooks& hooks = {});

}  // namespace kvbench::sweep
