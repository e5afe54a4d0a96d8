// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_kind.hpp>

#include <cmath>
#include <string_view>
#include <utility>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>

namespace kvbench::report {
namespace {

/// A table of kvbench of which there is no report: a column that tells it from tables without claims, what writes it,
/// and what to do.
struct OtherTable {
  std::string_view column, writer, remedy;
};
constexpr OtherTable other_tables[] = {
    {"budget_a", "compare",
     "give the table of the replay or evaluation that it compares; --format md of compare writes its rows for readers"},
    {"plan_share", "allocate --curve", "--figure of allocate draws a plan"},
    {"outliers", "info --rounding", "--trace of report adds what rounding does to the keys of a trace"},
    {"query_heads", "info", "give the table of a replay of the trace"},
    {"compress_n", "methods", "give the table of a replay of the methods"}};

/// Throws Error where it is one of these.
void refuse_other(const CsvTable& table) {
  for (const OtherTable& other : other_tables) {
    if (table.has(other.column))
      throw Error("{}: is a table of kvbench {}, of which there is no report; {}", table.file, other.writer,
                  other.remedy);
  }
}

}  // namespace

TableKind kind_of(const CsvTable& table) {
  if (table.has("listing")) return TableKind::listing;
  if (table.has("claim_verdict")) {
    require_columns(table, claim_columns(), "a sweep of a file with claims");
    return TableKind::claims;
  }
  refuse_other(table);
  if (table.has("claim") || table.has("verdict")) {
    require_columns(table, check_columns(), "kvbench validate");
    return TableKind::checks;
  }
  if (table.has("kl_mean") || table.has("inject")) {
    require_columns(table, eval_columns(), "kveval");
    return TableKind::evaluations;
  }
  if (table.has("measure") || table.has("array")) {
    require_columns(table, measure_columns(), "a sweep with `measure`");
    return TableKind::measures;
  }
  if (table.has("method") || table.has("rel_err_mean")) {
    require_columns(table, record_columns(), "kvbench replay");
    return TableKind::replay;
  }
  throw Error(
      "{}: is not a table of kvbench; its header has none of the columns 'method' (replay and sweep), 'claim' "
      "(validate), 'kl_mean' (eval) and 'measure' (measures)",
      table.file);
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
