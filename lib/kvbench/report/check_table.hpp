// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench validate` as text. Columns are declared once.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/check.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::span<const Column<CheckRow>> check_columns();

/// RFC 4180 quoting, LF, one header line.
std::string check_csv(std::span<const CheckRow> rows);
/// One line a row, then the sentences of what is violated.
std::string check_markdown(std::span<const CheckRow> rows);
/// For a terminal: one line a claim with the number of rows of each verdict, then faults and findings in a sentence each.
std::string check_summary(std::span<const CheckRow> rows);

}  // namespace kvbench
