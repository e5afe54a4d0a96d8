// SPDX-License-Identifier: Apache-2.0
// Pieces that every table of text is made of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvbench {

/// One CSV line with LF, quoted as RFC 4180 says.
std::string csv_line(std::span<const std::string> fields);

/// Rows of a short table, header first.
using TextRows = std::vector<std::vector<std::string>>;

/// One line of a Markdown table, of cells that are escaped already.
std::string markdown_line(std::span<const std::string> cells);
/// A Markdown table; columns for which `is_left` holds are aligned to the left, the others to the right.
std::string markdown_rows(const TextRows& rows, bool (*is_left)(std::size_t column));
/// The same aligned for a terminal. A row that is shorter than the header ends in a sentence, which takes no part in the widths;
/// its cells stand at the left.
std::string aligned_rows(const TextRows& rows, bool (*is_left)(std::size_t column));

/// Shortest decimal text that reads back as the same double; "" for NaN, "inf" for infinity.
std::string number_text(double value);

/// Three digits, for people; "-" for NaN.
std::string short_number(double value);

/// Three digits, zeros at the end too, so that columns of numbers are equally precise: "0.480"; "2.50e+07" from a
/// million on; "" for NaN.
std::string three_digits(double value);

/// "0.117 [0.112, 0.122]", or the mean alone where there is no interval.
std::string interval_text(double mean, double lo, double hi);

/// "5.41 to 27.4", or the one number that all are; `values` are not empty.
std::string range_text(std::span<const double> values);

/// Appends an item unless the list holds it.
void add_distinct(std::vector<std::string>& list, const std::string& item);

/// Position of the first byte that is not UTF-8 text (control characters but tab and line ends are none); npos: all is well.
std::size_t invalid_utf8(std::string_view text);

/// For HTML and SVG, in text and in quoted attributes.
std::string escape_xml(std::string_view text);

}  // namespace kvbench
