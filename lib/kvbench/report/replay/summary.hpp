// SPDX-License-Identifier: Apache-2.0
// What a replay or a sweep prints on a terminal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// At most 12 lines of at most 100 columns (terminal_text()): the answer, the five lowest errors, the best of each
/// family, and how many rows are not shown, which `rest` says how to see: "--summary=full". Of several budgets,
/// traces or runs: one line each, with the method of the lowest error, those that cannot be told from it, and the next.
std::vector<Block> brief_summary(std::span<const replay::Record> records, const std::string& rest);

/// All answers (answers_of()), all rows over all layers with their most important columns, the reasons of those without
/// results, and averages over texts. The records are of one run.
std::vector<Block> full_summary(std::span<const replay::Record> records);

}  // namespace kvbench::report
