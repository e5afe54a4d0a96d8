// SPDX-License-Identifier: Apache-2.0
// Blocks of a document as text for a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// Characters of a line of sentences. Tables may be wider.
inline constexpr std::size_t terminal_width = 100;

/// Sentences wrapped at terminal_width, tables with aligned columns, of a figure the numbers. A blank line stands
/// before every block but paragraphs and the tables that they introduce.
std::string terminal_text(std::span<const Block> blocks);

/// Lines of an answer that a command prints without being asked for more.
inline constexpr std::size_t answer_lines = 12;

/// Drops the last rows of tables, then blocks before the last one, until the text has at most answer_lines.
std::vector<Block> shortened(std::vector<Block> blocks);

}  // namespace kvbench::report
