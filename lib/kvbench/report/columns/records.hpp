// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of a replay.
#pragma once

#include <span>
#include <string>

#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<replay::Record>> record_columns();

/// RFC 4180 quoting, LF, one header line.
std::string csv_table(std::span<const replay::Record> records, bool times);

}  // namespace kvbench::report
