// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/sweep/cells_file.hpp>
#include <kvbench/sweep/shard.hpp>

namespace kvbench::sweep {

/// How much of a shard's work there is, in cells, and how much of it a file of cells spares.
struct Standing {
  std::size_t cells = 0, finished = 0;
};
Standing standing_of(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, const CellsFile& file);

/// Computes the cells of the shard that `file` does not hold, and appends each unit's when they are done. `layout` is the
/// plan's. hooks.progress counts units. Throws as replay() does; what was appended stays.
void run_sweep(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, CellsFile& file,
               const ReplayHooks& hooks = {});

}  // namespace kvbench::sweep
