// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench validate` as a table.
#pragma once

#include <span>
#include <vector>

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// One line per row, then check_findings().
std::vector<Block> every_check(std::span<const bounds::CheckRow> rows);

}  // namespace kvbench::report
