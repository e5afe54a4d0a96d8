// SPDX-License-Identifier: Apache-2.0
// The measures of a sweep as text. Columns are declared once.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/measures.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::span<const Column<MeasureRow>> measure_columns();

/// RFC 4180 quoting, LF, one header line.
std::string measures_csv(std::span<const MeasureRow> rows);

}  // namespace kvbench
