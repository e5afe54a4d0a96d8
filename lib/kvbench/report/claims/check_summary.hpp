// SPDX-License-Identifier: Apache-2.0
// What the rows of `kvbench validate` say, for a terminal.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/check/row.hpp>

namespace kvbench::report {

/// For a terminal: the number of rows per verdict of each claim, then check_findings().
std::string check_summary(std::span<const bounds::CheckRow> rows);
/// One page: what is violated, what holds, what is contradicted, and what could not be decided and what it would take.
std::string check_findings(std::span<const bounds::CheckRow> rows);

}  // namespace kvbench::report
