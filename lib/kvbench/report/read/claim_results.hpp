// SPDX-License-Identifier: Apache-2.0
// Verdicts on claims, from the table of a sweep.
#pragma once

#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// The claims of a table, as far as it holds them. Throws Error with file, line and column.
std::vector<compare::ClaimResult> claims_of(const CsvTable& table);

}  // namespace kvbench::report
