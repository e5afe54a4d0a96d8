// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of `kvbench compare`.
#pragma once

#include <span>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<compare::Comparison>> compare_columns();

}  // namespace kvbench::report
