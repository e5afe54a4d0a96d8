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
/// One line per row, then check_findings().
std::string check_markdown(std::span<const CheckRow> rows);
/// "prompt 0, layer 1, kv head 2", or the stream.
std::string subject_text(const CheckRow& row);

/// For a terminal: the number of rows per verdict of each claim, then check_findings().
std::string check_summary(std::span<const CheckRow> rows);
/// One page: what is violated, what holds, what is contradicted, and what could not be decided and what it would take.
std::string check_findings(std::span<const CheckRow> rows);

}  // namespace kvbench
