// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/checked_rows.hpp>

#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>

namespace kvbench::report {

void require_number(const CsvTable& table, const CsvRow& row, std::string_view column) {
  if (!std::isnan(table.number(row, column))) return;
  throw Error("{}:{}: column '{}' holds '{}', and a row with status ok needs a number there", table.file, row.line,
              column, table.text(row, column));
}

void require_numbers(const CsvTable& table, const CsvRow& row) {
  for (const Column<eval::EvalRecord>& column : eval_columns()) {
    if (column.value.needed && column.type == "number") require_number(table, row, column.key);
  }
}

}  // namespace kvbench::report
