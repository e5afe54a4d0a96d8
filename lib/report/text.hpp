// SPDX-License-Identifier: Apache-2.0
// Pieces that every table of text is made of.
#pragma once

#include <functional>
#include <span>
#include <string>
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

}  // namespace kvbench
