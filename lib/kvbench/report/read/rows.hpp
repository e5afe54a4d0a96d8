// SPDX-License-Identifier: Apache-2.0
// Reads the rows of a table by the columns that declare them; what tells the rows of several tables apart, by the
// columns that say so.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

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

/// The cells of a row in the columns that tell rows apart; "" where the table lacks one.
using RowKey = std::vector<std::string>;
/// A row of a table.
using RowPlace = std::pair<const CsvTable*, const CsvRow*>;

/// `most`: the last kind of columns that count, such as Tells::section.
template <class Row>
RowKey key_of(const CsvTable& table, const CsvRow& row, std::span<const Column<Row>> columns, Tells most) {
  RowKey key;
  for (const Column<Row>& column : columns) {
    if (column.tells != Tells::nothing && column.tells <= most) key.push_back(table.text(row, column.key));
  }
  return key;
}

/// The first of equal rows, of several tables of one kind.
template <class Row>
class FirstRows {
 public:
  explicit FirstRows(std::span<const Column<Row>> columns) : columns_(columns) {}

  /// Where the row, or one that is told apart from it by nothing, was added first. Throws Error where its own table has
  /// it twice.
  RowPlace add(const CsvTable& table, const CsvRow& row) {
    const auto [known, fresh] = first_.emplace(key_of(table, row, columns_, Tells::query), RowPlace(&table, &row));
    if (!fresh && known->second.first == &table) {
      const Row twice = RowReader<Row>(table, columns_)(row);
      throw Error("{}:{}: the row of {} {} at {} appears twice", table.file, row.line, twice.method, twice.params,
                  twice.budget);
    }
    return known->second;
  }

 private:
  std::span<const Column<Row>> columns_;
  std::map<RowKey, RowPlace> first_;
};

}  // namespace kvbench::report
