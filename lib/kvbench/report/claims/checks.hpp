// SPDX-License-Identifier: Apache-2.0
// What reports and terminals show of the rows of `kvbench validate`.
#pragma once

#include <span>
#include <vector>

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// The section of a report: verdicts per claim, what the data refute, bounds next to measured values, and statements
/// that were not tested.
std::vector<Block> check_blocks(std::span<const CsvTable* const> tables);

/// One line per row, then check_findings().
std::vector<Block> every_check(std::span<const bounds::CheckRow> rows);
/// The number of rows per verdict of each claim, then check_findings().
std::vector<Block> check_summary(std::span<const bounds::CheckRow> rows);
/// One page: what is violated, what holds, what is contradicted, and what could not be decided and what it would take.
std::vector<Block> check_findings(std::span<const bounds::CheckRow> rows);

}  // namespace kvbench::report
