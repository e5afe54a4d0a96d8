// SPDX-License-Identifier: Apache-2.0
// The measures of a sweep as text. Columns are declared once.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/measures/measures.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<bounds::MeasureRow>> measure_columns();

/// RFC 4180 quoting, LF, one header line.
std::string measures_csv(std::span<const bounds::MeasureRow> rows);

}  // namespace kvbench::report
