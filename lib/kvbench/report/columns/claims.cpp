// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>

#include <algorithm>

namespace kvbench::report {
namespace {

/// A value of the result; empty where there is none.
template <class F>
Value<ClaimRow> of_result(F of) {
  return {.print = [of](const ClaimRow& row) { return row.result ? value_text(std::invoke(of, *row.result)) : ""; },
          .parse =
              [of](ClaimRow& row, const CsvCell& cell) {
                if (row.result) parse_value(cell, std::invoke(of, *row.result));
              },
          .number = gives_number<F, compare::RelationResult>};
}

/// A column of comparisons.
Value<ClaimRow> of_comparison(const Value<compare::Comparison>& value) {
  Value<ClaimRow> out{
      .print = [print = value.print](const ClaimRow& row) { return row.result ? print(row.result->comparison) : ""; },
      .needed = value.needed,
      .number = value.number};
  if (!value.parse) return out;
  out.parse = [parse = value.parse](ClaimRow& row, const CsvCell& cell) {
    if (row.result) parse(row.result->comparison, cell);
  };
  return out;
}

/// Columns of comparisons that mean something else here, or that claims do not have.
bool is_left_out(const Column<compare::Comparison>& column) {
  constexpr std::string_view keys[] = {"verdict", "reason", "metric",   "p_value",        "version", "commit",
                                       "text",    "task",   "question", "context_tokens", "inject",  "inject_layer"};
  return std::ranges::find(keys, column.key) != std::end(keys);
}

void parse_verdict(const CsvCell& cell, Verdict& out) {
  for (const Verdict verdict : claim_verdicts) {
    if (cell.text == name_of(verdict)) return void(out = verdict);
  }
  cell.refuse("a verdict on a claim");
}

Value<ClaimRow> claim_verdict() {
  return {.print = [](const ClaimRow& row) { return value_text(row.verdict); },
          .parse = [](ClaimRow& row, const CsvCell& cell) { parse_verdict(cell, row.verdict); }};
}
Value<ClaimRow> relation_verdict() {
  Value<ClaimRow> value = of_result(&compare::RelationResult::verdict);
  value.parse = [](ClaimRow& row, const CsvCell& cell) {
    if (row.result) parse_verdict(cell, row.result->verdict);
  };
  return value;
}

/// A row with a relation has a result.
Value<ClaimRow> relation() {
  Value<ClaimRow> value = of_result(&compare::RelationResult::relation);
  value.parse = [](ClaimRow& row, const CsvCell& cell) {
    if (!cell.text.empty()) row.result.emplace().relation = cell.text;
  };
  return value;
}

Value<ClaimRow> reason() {
  const auto of = [](auto& row) -> auto& { return row.result ? row.result->comparison.reason : row.claim.untestable; };
  return value_where<ClaimRow>(always, of);
}

Value<ClaimRow> metric() {
  return {
      .print = [](const ClaimRow& row) { return row.result ? std::string(row.result->comparison.metric.name) : ""; },
      .parse =
          [](ClaimRow& row, const CsvCell& cell) {
            if (const auto known = compare::find_query_metric(cell.text)) row.claim.metric = *known;
            if (row.result) row.result->comparison.metric = row.claim.metric;
          }};
}

std::vector<Column<ClaimRow>> make_columns() {
  std::vector<Column<ClaimRow>> columns = {
      {"claim", "what the paper claims",
       needed(value_where<ClaimRow>(
           always, [](auto& row) -> auto& { return row.claim.text; }))},
      {"claim_verdict", "verdict on the claim over all its rows: supported, contradicted, undecided or untestable",
       needed(claim_verdict())},
      {"relation", "what the claim says of two configurations", needed(relation())},
      {"verdict", "verdict on the relation here", needed(relation_verdict())},
      {"reason", "why it cannot be tested, or a note", needed(reason())},
      {"metric", "metric of the claim", needed(metric())},
      of_share<ClaimRow>({"p_value", "two-sided p-value of the stated order; p_adjusted: by Holm over the claim",
                          needed(of_result(&compare::RelationResult::p_value))}),
  };
  for (const Column<compare::Comparison>& column : compare_columns()) {
    if (is_left_out(column)) continue;
    columns.push_back({column.key, column.doc, of_comparison(column.value)});
    columns.back().limits = column.limits;
  }
  columns.push_back(version_column<ClaimRow>());
  columns.push_back(commit_column<ClaimRow>());
  return columns;
}

}  // namespace

std::span<const Column<ClaimRow>> claim_columns() {
  static const std::vector<Column<ClaimRow>> table = make_columns();
  return table;
}

std::string claims_table(const std::string& format, std::span<const compare::ClaimResult> claims) {
  std::vector<ClaimRow> rows;
  for (const compare::ClaimResult& claim : claims) {
    if (claim.results.empty()) rows.push_back({claim.claim, claim.verdict, {}});
    for (const compare::RelationResult& result : claim.results) rows.push_back({claim.claim, claim.verdict, result});
  }
  return table_of(format, claim_columns(), rows);
}

}  // namespace kvbench::report
