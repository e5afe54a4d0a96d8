// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench compare` as text. Columns are declared once.
#pragma once

#include <span>
#include <string>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::span<const Column<Comparison>> compare_columns();

/// RFC 4180 quoting, LF, one header line.
std::string compare_csv(std::span<const Comparison> rows);
/// The most important columns as a table, then compare_summary().
std::string compare_markdown(std::span<const Comparison> rows);
/// The same aligned for a terminal.
std::string compare_terminal(std::span<const Comparison> rows);

/// "subgen is better in 5 of 8 groups, h2o in 1, 2 not distinguishable; Holm over 8 hypotheses at 5 %."
std::string compare_summary(std::span<const Comparison> rows);

}  // namespace kvbench
