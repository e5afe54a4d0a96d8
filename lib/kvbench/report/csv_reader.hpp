// SPDX-License-Identifier: Apache-2.0
// CSV as RFC 4180 has it, read whole, with complaints that name file and line.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvbench {

struct CsvRow {
  std::size_t line;  ///< of the file, from 1: where the row begins
  std::vector<std::string> cells;
};

struct CsvTable {
  std::string file;  ///< as given: for complaints
  std::string name;  ///< for readers: without its folder
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;  ///< each as long as `columns`

  std::optional<std::size_t> find(std::string_view column) const;
  bool has(std::string_view column) const { return find(column).has_value(); }
  /// The cell of a column that the table has; "" where it has none.
  const std::string& text(const CsvRow& row, std::string_view column) const;
  /// NaN for an empty cell or a column that the table lacks; throws Error with file, line and column where it is no number.
  double number(const CsvRow& row, std::string_view column) const;

  std::unordered_map<std::string, std::size_t> index;  ///< column -> position
};

/// UTF-8 with LF or CRLF; one header line and at least one row, all of one width. `file` stands in the complaints. Throws
/// Error.
CsvTable parse_csv(std::string_view text, const std::string& file);

/// Throws Error where the file does not exist or is no such CSV, IoError where it cannot be read.
CsvTable read_csv(const std::string& path);

/// The same for files of many rows: hands over one row after the other, with a table that has the columns and no rows.
void scan_csv(const std::string& path, const std::function<void(const CsvTable&, const CsvRow&)>& take);

}  // namespace kvbench
