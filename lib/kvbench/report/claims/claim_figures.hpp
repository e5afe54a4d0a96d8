// SPDX-License-Identifier: Apache-2.0
// Figures of a claim about results of methods.
#pragma once

#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The metric of a claim, and the ratio of its two sides, against the budget: one drawing per place.
std::vector<Block> claim_figures(const compare::ClaimResult& claim);

}  // namespace kvbench::report
