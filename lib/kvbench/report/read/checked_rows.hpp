// SPDX-License-Identifier: Apache-2.0
// Claims of a table, and numbers that rows of kveval must have.
#pragma once

#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// The claims of a table, as far as it holds them. Throws Error with file, line and column.
std::vector<compare::ClaimResult> claims_of(const CsvTable& table);

/// Throws Error with file, line and column where the cell is not a number, or NaN.
void require_number(const CsvTable& table, const CsvRow& row, std::string_view column);
/// The same for every number that a row over all layers with status ok needs.
void require_numbers(const CsvTable& table, const CsvRow& row);

}  // namespace kvbench::report
