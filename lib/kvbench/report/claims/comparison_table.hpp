// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench compare` as text for readers.
#pragma once

#include <span>
#include <string>

#include <kvbench/compare/comparison.hpp>

namespace kvbench::report {

/// The most important columns as a table, then compare_summary().
std::string compare_markdown(std::span<const compare::Comparison> rows);
/// The same aligned for a terminal.
std::string compare_terminal(std::span<const compare::Comparison> rows);

/// "subgen is better in 5 of 8 groups, h2o in 1, 2 not distinguishable; Holm over 8 hypotheses at 5 %."
std::string compare_summary(std::span<const compare::Comparison> rows);

}  // namespace kvbench::report
