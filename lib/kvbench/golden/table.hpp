// SPDX-License-Identifier: Apache-2.0
// The tables of golden rows: their columns, and the rows read back.
#pragma once

#include <span>
#include <vector>

#include <kvbench/golden/compare.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::golden {

std::span<const report::Column<Row>> golden_columns();
std::span<const report::Column<Verified>> verified_columns();

/// The file of golden rows. What a row shares with the one above (trace, back ends, tolerances, ids) is an empty cell.
std::string csv_of(std::span<const Row> rows);
/// The rows of such a file. Throws Error with file, line and column where it lacks a column, a cell cannot be read,
/// rows are about different traces, or the digest and the numbers of entries are not those of the ids.
std::vector<Row> rows_of(report::CsvTable table);

}  // namespace kvbench::golden
