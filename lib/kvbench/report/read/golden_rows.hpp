// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/golden/row.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// The golden rows of a table. Throws Error with file, line and column where it lacks a column, a cell cannot be read,
/// rows are about different traces, or the digest and the numbers of entries are not those of the ids.
std::vector<golden::Row> golden_rows(const CsvTable& table);

}  // namespace kvbench::report
