// SPDX-License-Identifier: Apache-2.0
// What writes a document: HTML (with report.css and report.js), Markdown, LaTeX, and a terminal.
// The files of this folder that are parts of every page; CMake embeds them without their first comment.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// What every report begins with, and no other page.
inline constexpr std::string_view html_opening =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
    "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'\">\n";

/// One self-contained file without network access, for light and dark screens, paper and narrow screens. A small script
/// sorts and filters tables and picks out methods; everything is readable without it.
std::string html(const Document& document);

/// The text and tables of a report; of a figure the numbers.
std::string markdown(const Document& document);
/// The same of blocks alone.
std::string markdown(std::span<const Block> blocks);

/// The tables that are not folded, without what is for screens alone, with the rules of booktabs and their titles as
/// captions, at most as wide as the text of the class `article`; its second line names the packages that it needs.
std::string latex(const Document& document);

/// Characters of a line of sentences. Tables may be wider.
inline constexpr std::size_t terminal_width = 100;

/// Sentences wrapped at terminal_width, tables with aligned columns, of a figure the numbers. A blank line stands
/// before every block but paragraphs and the tables that they introduce.
std::string terminal_text(std::span<const Block> blocks);

/// Lines of an answer that a command prints without being asked for more.
inline constexpr std::size_t answer_lines = 12;

/// The blocks and last sentences, which `last` words from the number of rows that the tables show ("": none). Drops the
/// last rows of tables, then the first of the last sentences, then the last blocks, until the text has at most
/// answer_lines.
std::vector<Block> shortened(std::vector<Block> blocks,
                             const std::function<std::vector<std::string>(std::size_t rows)>& last);

std::string_view report_css();
std::string_view report_js();

}  // namespace kvbench::report
