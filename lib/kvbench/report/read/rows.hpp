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
/// cell cannot be read.
template <class Row>
class RowReader {
 public:
  RowReader(const CsvTable& table, std::span<const Column<Row>> columns) : table_(&table), columns_(columns) {
    for (const Column<Row>& column : columns) places_.push_back(table.find(column.key));
  }

  Row operator()(const CsvRow& row) const {
    static const std::string none;
    Row out{};
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].value.parse)
        columns_[c].value.parse(out,
                                {table_->file, row.line, columns_[c].key, places_[c] ? row.cells[*places_[c]] : none});
    }
    return out;
  }

 private:
  const CsvTable* table_;
  std::span<const Column<Row>> columns_;
  std::vector<std::optional<std::size_t>> places_;
};

}  // namespace kvbench::report
