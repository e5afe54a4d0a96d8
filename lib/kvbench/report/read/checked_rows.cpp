// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/checked_rows.hpp>

#include <cmath>
#include <utility>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>

namespace kvbench::report {
namespace {

void check_tolerances(const CsvTable& table, const CsvRow& line, const golden::Row& row) {
  for (const auto& [name, value] : {std::pair{"rtol", row.rtol}, {"atol", row.atol}}) {
    if (!(0 <= value && value < 1)) table.cell(line, name).refuse("a tolerance of at least 0 and below 1");
  }
}

void check_ids(const CsvTable& table, const CsvRow& line, const golden::Row& row) {
  const Index group = std::ssize(row.entries);
  if (row.ids.size() != 1 && std::ssize(row.ids) != group)
    table.cell(line, "ids").refuse(fmt::format("one list of ids, or one for each of the {} query heads", group));
  for (Index g = 0; g < group; ++g) {
    if (std::ssize(golden::ids_of_head(row.ids, g)) != row.entries[static_cast<std::size_t>(g)])
      table.cell(line, "entries").refuse("the numbers of the ids; was one of them edited?");
  }
  if (row.ids_sha256 != golden::digest_of(row.ids, group))
    table.cell(line, "ids_sha256").refuse("the digest of the ids; was one of them edited?");
}

}  // namespace

std::vector<golden::Row> golden_rows(const CsvTable& table) {
  require_columns(table, golden_columns(), "kvbench verify-golden --write");
  const RowReader<golden::Row> read(table, golden_columns());
  std::vector<golden::Row> rows;
  std::size_t ids = 0;
  for (const CsvRow& line : table.rows) {
    const golden::Row& row = rows.emplace_back(read(line));
    for (const auto& list : row.ids) ids += list.size();
    if (ids > golden::most_ids_of_file)
      table.cell(line, "ids").refuse(fmt::format("short lists; the rows up to it have {} ids together", ids));
    check_tolerances(table, line, row);
    check_ids(table, line, row);
    if (row.sha256.size() < golden::digest_digits)
      table.cell(line, "sha256")
          .refuse(fmt::format("the first {} digits of the SHA-256 of a trace", golden::digest_digits));
    if (row.sha256 != rows.front().sha256)
      table.cell(line, "sha256").refuse("that of the rows before it; golden rows are about one trace");
  }
  return rows;
}

std::vector<compare::ClaimResult> claims_of(const CsvTable& table) {
  const RowReader<ClaimRow> read(table, claim_columns());
  std::vector<compare::ClaimResult> claims;
  for (const CsvRow& line : table.rows) {
    ClaimRow row = read(line);
    if (claims.empty() || claims.back().claim.text != row.claim.text)
      claims.push_back({.claim = row.claim, .verdict = row.verdict});
    if (!row.result) continue;
    compare::Comparison& comparison = row.result->comparison;
    if (!std::isnan(comparison.test.difference)) comparison.outcome = compare::Outcome::tied;  // compared
    claims.back().results.push_back(std::move(*row.result));
  }
  return claims;
}

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
