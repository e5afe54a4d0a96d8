// SPDX-License-Identifier: Apache-2.0
// The columns of golden rows, and of the rows of `kvbench verify-golden`, which begin with the same.
#pragma once

#include <span>

#include <kvbench/golden/compare.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<golden::Row>> golden_columns();
std::span<const Column<golden::Verified>> verified_columns();

}  // namespace kvbench::report
