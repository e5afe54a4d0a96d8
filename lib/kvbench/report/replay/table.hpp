// SPDX-License-Identifier: Apache-2.0
// Rows of a replay as tables of their most important columns.
// What a replay or a sweep prints on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// How many times the error of the best row, with the interval for all layers and texts like these: "1.4 (1.2..1.6)";
/// "1" for the best itself, "-" without a test over them.
std::string times_best(const replay::Record& r);

/// The rows over all layers, and over all prompts of a trace where it has several.
std::vector<replay::Record> rows_over_layers(std::span<const replay::Record> records);

/// Every row in the order given, with its layer, and the layers that the rows over all of them summarise.
std::vector<Block> all_rows(std::span<const replay::Record> records);

/// One line per configuration over all layers, budget by budget in ascending order of the error; then the reasons of
/// the rows without results. Tables of several traces show the trace of each row.
std::vector<Block> rows_by_error(std::span<const replay::Record> records);

/// Where three texts or more were replayed: one line per configuration with its average, rank and wins over them
/// (summarize_texts).
std::optional<DocTable> averages_over_texts(std::span<const replay::Record> records);

/// At most 12 lines of at most 100 columns (terminal_text()): the answer, which methods are not ranked, the five lowest
/// errors, the best of each family, and how many rows are not shown, which `rest` says how to see: "--summary=full". Of
/// several budgets, traces or runs: one line each, with the method of the lowest error, those that no test tells from
/// it, and the next. Without an answer: five rows without ranks, references last.
std::vector<Block> brief_summary(std::span<const replay::Record> records, const std::string& rest);

/// All answers (answers_of()), all rows over all layers with their most important columns, the reasons of those without
/// results, and averages over texts. The records are of one run.
std::vector<Block> full_summary(std::span<const replay::Record> records);

}  // namespace kvbench::report
