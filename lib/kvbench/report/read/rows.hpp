// SPDX-License-Identifier: Apache-2.0
// Reads the rows of a table by the columns that declare them.
#pragma once

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// Throws Error with file, column and writer where the table lacks a column that is needed.
template <class Row>
void require_columns(const CsvTable& table, std::span<const Column<Row>> columns, const char* writer) {
  for (const Column<Row>& column : columns) {
    if (column.value.needed && !table.has(column.key))
      throw Error("{}: lacks the column '{}', which {} writes", table.file, column.key, writer);
  }
}

/// A row of the table. Columns that it lacks are read as empty cells. Throws Error with file, line and column where a
/// cell cannot be read. `identity`: only the columns that tell rows apart are read.
template <class Row>
class RowReader {
 public:
  RowReader(const CsvTable& table, std::span<const Column<Row>> columns, bool identity = false) : table_(&table) {
    for (const Column<Row>& column : columns) {
      if (column.value.parse && (!identity || column.tells != Tells::nothing))
        columns_.emplace_back(&column, table.find(column.key));
    }
  }

  Row operator()(const CsvRow& row) const {
    static const std::string none;
    Row out{};
    for (const auto& [column, place] : columns_) {
      const CsvCell cell{table_->file, row.line, column->key, place ? row.cells[*place] : none};
      check_limits(cell, *column);
      column->value.parse(out, cell);
    }
    return out;
  }

 private:
  const CsvTable* table_;
  std::vector<std::pair<const Column<Row>*, std::optional<std::size_t>>> columns_;
};

}  // namespace kvbench::report
