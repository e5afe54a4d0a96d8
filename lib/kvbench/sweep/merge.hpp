// SPDX-License-Identifier: Apache-2.0
// Shards of a sweep as one.
#pragma once

#include <kvbench/sweep/cells_file.hpp>

namespace kvbench::sweep {

struct Merged {
  SweepLayout layout;
  std::vector<CellsFile> files;
  std::vector<std::string> notes;  ///< sentences for the user: cells that stand in several files, torn ends
};

/// Opens files of cells. Throws Error where they are of different sweeps (and says in what they differ), or where two hold
/// different results for one cell.
Merged open_shards(const std::vector<std::string>& paths);

}  // namespace kvbench::sweep
