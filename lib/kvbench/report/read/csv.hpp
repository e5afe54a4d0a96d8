// SPDX-License-Identifier: Apache-2.0
// Reads CSV files as csv_line() writes them, as a whole. Errors name file and line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

struct CsvRow {
  std::size_t line;  ///< line of the file where the row begins, from 1
  std::vector<std::string> cells;
};

struct CsvTable {
  std::string file;  ///< path as given, for messages
  std::string name;  ///< without its folder, printable(), for reports
  std::vector<std::string> columns = {};
  std::vector<CsvRow> rows = {};  ///< each as long as `columns`

  std::optional<std::size_t> find(std::string_view column) const;
  bool has(std::string_view column) const { return find(column).has_value(); }
  /// The cell of a column; "" where the table has no such column.
  const std::string& text(const CsvRow& row, std::string_view column) const;
  CsvCell cell(const CsvRow& row, std::string_view column) const { return {file, row.line, column, text(row, column)}; }
  /// The same as a number. NaN for an empty cell or where the table has no such column; throws Error with file, line
  /// and column where the cell is not a number.
  double number(const CsvRow& row, std::string_view column) const;
  /// The same for whole numbers from 0 to 2^53; 0 for an empty cell or where the table has no such column.
  std::int64_t count(const CsvRow& row, std::string_view column) const;

  std::unordered_map<std::string, std::size_t> index = {};  ///< column -> position
};

/// Parses UTF-8 with LF or CRLF: one header line and at least one row, all with the same number of fields, at most 4096
/// of at most 1 MiB each. Throws Error, whose message names `file`.
CsvTable parse_csv(std::string_view text, const std::string& file);

/// Throws Error where the file does not exist, is not a regular file of at most 4 GiB, or not such a CSV, IoError where
/// it cannot be read.
CsvTable read_csv(const std::string& path);

/// The same for large files: calls `take` with one row after the other and a table that has the columns but no rows.
void scan_csv(const std::string& path, const std::function<void(const CsvTable&, const CsvRow&)>& take);

}  // namespace kvbench::report
