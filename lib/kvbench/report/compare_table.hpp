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
/// What a reader looks at first, and a closing sentence that counts the verdicts.
std::string compare_markdown(std::span<const Comparison> rows);
/// The same aligned for a terminal.
std::string compare_terminal(std::span<const Comparison> rows);

/// "subgen is better in 5 of 8 cells, h2o in 1, 2 not distinguishable; Holm over 8 hypotheses at 5 %."
std::string compare_summary(std::span<const Comparison> rows);

}  // namespace kvbench
