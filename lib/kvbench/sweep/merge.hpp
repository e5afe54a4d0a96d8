// SPDX-License-Identifier: Apache-2.0
// The shards of a sweep, joined.
#pragma once

#include <kvbench/sweep/cells_file.hpp>

namespace kvbench::sweep {

struct Merged {
  SweepLayout layout;
  std::vector<CellsFile> files;
  /// sentences for the user about cells that are in several files, and incomplete ones
  std::vector<std::string> notes;
};

/// Opens files of cells. Throws Error where they belong to different sweeps, with the difference, where another kvbench
/// computed them, or where two files hold different results for the same cell.
Merged open_shards(const std::vector<std::string>& paths);

}  // namespace kvbench::sweep
