// SPDX-License-Identifier: Apache-2.0
// Rows of `kvbench validate`: verdicts per claim, what the data refute, bounds next to measured values, statements that
// were not tested.
#pragma once

#include <span>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// Bounds and claims with their verdicts.
std::vector<Block> check_blocks(std::span<const CsvTable* const> tables);

}  // namespace kvbench::report
