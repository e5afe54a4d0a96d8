// SPDX-License-Identifier: Apache-2.0
// Rows of finished cells. Only the cells of one method are in memory at a time.
#pragma once

#include <kvbench/replay/records/record.hpp>
#include <kvbench/sweep/cells_file.hpp>

namespace kvbench::sweep {

struct SweepResults {
  std::vector<replay::Record> records;  ///< of all runs in order; Record::run names them
  std::vector<measures::MeasureRow> measures;
  std::vector<compare::ClaimResult> claims;  ///< of the sweep file, in order
};

/// The rows of a whole sweep; they do not depend on which file holds which cell. A cell that no file holds counts as
/// skipped with the reason "not computed" in every row that aggregates it.
SweepResults collect(const SweepLayout& layout, std::span<const CellsFile> files, replay::Grain grain);

/// Descriptions of the cells of the layout that no file holds.
std::vector<std::string> missing_cells(const SweepLayout& layout, std::span<const CellsFile> files);

bool has_replays(const SweepLayout& layout);
bool has_measures(const SweepLayout& layout);

}  // namespace kvbench::sweep
