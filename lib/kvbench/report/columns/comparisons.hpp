// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of `kvbench compare`.
#pragma once

#include <span>
#include <string>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<compare::Comparison>> compare_columns();

/// RFC 4180 quoting, LF, one header line.
std::string compare_csv(std::span<const compare::Comparison> rows);

}  // namespace kvbench::report
