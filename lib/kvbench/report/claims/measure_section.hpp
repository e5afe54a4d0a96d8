// SPDX-License-Identifier: Apache-2.0
// Measures of keys and values.
#pragma once

#include <span>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// One figure per run, trace and measure.
std::vector<Block> measure_blocks(std::span<const CsvTable* const> tables);

}  // namespace kvbench::report
