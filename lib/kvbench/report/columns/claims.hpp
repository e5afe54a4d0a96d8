// SPDX-License-Identifier: Apache-2.0
// The columns of verdicts on the claims of a sweep file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// A result of a claim, or a claim without results.
struct ClaimRow {
  const compare::ClaimResult* claim = nullptr;
  const compare::RelationResult* result = nullptr;
};

std::span<const Column<ClaimRow>> claim_columns();

/// One row per result; one row for a claim that is not tested.
std::string claims_csv(std::span<const compare::ClaimResult> claims);

/// The same results from such a table, as far as it holds them. Throws Error with file, line and column.
std::vector<compare::ClaimResult> claims_of(const CsvTable& table);

}  // namespace kvbench::report
