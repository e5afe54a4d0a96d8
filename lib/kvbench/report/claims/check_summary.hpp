// SPDX-License-Identifier: Apache-2.0
// What the rows of `kvbench validate` say.
#pragma once

#include <span>
#include <vector>

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The number of rows per verdict of each claim, then check_findings().
std::vector<Block> check_summary(std::span<const bounds::CheckRow> rows);
/// One page: what is violated, what holds, what is contradicted, and what could not be decided and what it would take.
std::vector<Block> check_findings(std::span<const bounds::CheckRow> rows);

}  // namespace kvbench::report
