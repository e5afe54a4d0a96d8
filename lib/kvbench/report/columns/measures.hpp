// SPDX-License-Identifier: Apache-2.0
// The measures of a sweep as text. Columns are declared once.
#pragma once

#include <span>

#include <kvbench/bounds/measures/measures.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<bounds::MeasureRow>> measure_columns();

}  // namespace kvbench::report
