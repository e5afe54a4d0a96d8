// SPDX-License-Identifier: Apache-2.0
// Rows of a replay as text for readers.
#pragma once

#include <span>
#include <string>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::report {

/// A Markdown table of the most important columns, and the layers that it summarises, of how many.
std::string markdown_table(std::span<const replay::Record> records);

/// The same columns aligned for a terminal: one line per configuration over all layers, budget by budget in ascending
/// order of the error; then the reasons of the rows without results (reasons_text). Tables of several traces show the
/// trace of each row.
std::string terminal_table(std::span<const replay::Record> records);

/// Where three texts or more were replayed: one line per configuration with its average, rank and wins over them
/// (summarize_texts). Else "".
std::string text_table(std::span<const replay::Record> records);

/// The answers that follow from the rows (answers_of), then the terminal table.
std::string terminal_summary(std::span<const replay::Record> records);

}  // namespace kvbench::report
