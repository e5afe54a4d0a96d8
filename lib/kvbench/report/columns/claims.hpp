// SPDX-License-Identifier: Apache-2.0
// The columns of verdicts on the claims of a sweep file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

/// A result of a claim, or a claim without results.
struct ClaimRow {
  compare::PaperClaim claim;
  Verdict verdict = Verdict::untestable;
  std::optional<compare::RelationResult> result;
};

std::span<const Column<ClaimRow>> claim_columns();

/// One row per result; one row for a claim that is not tested.
std::string claims_table(const std::string& format, std::span<const compare::ClaimResult> claims);

}  // namespace kvbench::report
