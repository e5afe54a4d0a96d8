// SPDX-License-Identifier: Apache-2.0
// Records as text.
#pragma once

#include <span>
#include <string>

#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::span<const Column<Record>> record_columns();

/// RFC 4180 quoting, LF, one header line.
std::string csv_table(std::span<const Record> records, bool times);

/// A Markdown table of the columns that a reader looks at first.
std::string markdown_table(std::span<const Record> records);

/// The same columns aligned for a terminal: one line a method and budget over all layers, best error first.
std::string terminal_table(std::span<const Record> records);

}  // namespace kvbench
