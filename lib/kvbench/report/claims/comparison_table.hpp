// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench compare` for readers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The most important columns as a table, then compare_summary().
std::vector<Block> comparison_blocks(std::span<const compare::Comparison> rows);

/// "subgen is better in 5 of 8 groups, h2o in 1, 2 not distinguishable; Holm over 8 hypotheses at 5 %."
std::string compare_summary(std::span<const compare::Comparison> rows);

}  // namespace kvbench::report
