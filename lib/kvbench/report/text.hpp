// SPDX-License-Identifier: Apache-2.0
// Pieces that every table of text is made of.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvbench {

/// One CSV line with LF, quoted as RFC 4180 says.
std::string csv_line(std::span<const std::string> fields);

/// A column of a table of `Row`, declared once for the writer and for the documentation.
template <class Row>
struct TextColumn {
  std::string key, doc;
  std::function<std::string(const Row&)> text;  ///< "" = no value
};

/// RFC 4180 quoting, LF, one header line.
template <class Row>
std::string csv_of(std::span<const TextColumn<Row>> columns, std::span<const Row> rows) {
  std::vector<std::string> cells;
  for (const auto& column : columns) cells.push_back(column.key);
  std::string out = csv_line(cells);
  for (const Row& row : rows) {
    cells.clear();
    for (const auto& column : columns) cells.push_back(column.text(row));
    out += csv_line(cells);
  }
  return out;
}

/// Three digits, for people; "-" for NaN.
std::string short_number(double value);

/// Three digits, zeros at the end too, so that columns of numbers are equally precise: "0.480"; "2.50e+07" from a
/// million on; "" for NaN.
std::string three_digits(double value);

/// "0.117 [0.112, 0.122]", or the mean alone where there is no interval.
std::string interval_text(double mean, double lo, double hi);

/// "5.41 to 27.4", or the one number that all are; `values` are not empty.
std::string range_text(std::span<const double> values);

/// Position of the first byte that is not UTF-8 text (control characters but tab and line ends are none); npos: all is well.
std::size_t invalid_utf8(std::string_view text);

/// For HTML and SVG, in text and in quoted attributes.
std::string escape_xml(std::string_view text);

}  // namespace kvbench
