// SPDX-License-Identifier: Apache-2.0
// Verdicts on the claims of a sweep file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/column.hpp>
#include <kvbench/report/csv_reader.hpp>

namespace kvbench {

/// A result of a claim, or a claim without results.
struct ClaimRow {
  const ClaimResult* claim = nullptr;
  const RelationResult* result = nullptr;
};

std::span<const Column<ClaimRow>> claim_columns();

/// One row per result; one row for a claim that is not tested.
std::string claims_csv(std::span<const ClaimResult> claims);

/// The same results from such a table, as far as it holds them. Throws Error with file, line and column.
std::vector<ClaimResult> claims_of(const CsvTable& table);

/// verdict_text() of each.
std::string claims_text(std::span<const ClaimResult> claims);

}  // namespace kvbench
