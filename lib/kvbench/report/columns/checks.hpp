// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of `kvbench validate`.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<bounds::CheckRow>> check_columns();

/// RFC 4180 quoting, LF, one header line.
std::string check_csv(std::span<const bounds::CheckRow> rows);
/// "prompt 0, layer 1, kv head 2", or the stream.
std::string subject_text(const bounds::CheckRow& row);

}  // namespace kvbench::report
