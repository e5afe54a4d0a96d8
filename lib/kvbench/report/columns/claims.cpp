// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/claims.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/comparisons.hpp>

namespace kvbench::report {
namespace {

/// A value of the result; empty where there is none.
template <class F>
auto of_result(F value) {
  return
      [value](const ClaimRow& row) { return row.result == nullptr ? std::string() : value_text(value(*row.result)); };
}

/// Columns of comparisons that mean something else here, or that claims do not have.
bool is_left_out(const Column<compare::Comparison>& column) {
  constexpr std::string_view keys[] = {"verdict", "reason", "metric",   "p_value",        "version", "commit",
                                       "text",    "task",   "question", "context_tokens", "inject",  "inject_layer"};
  return std::ranges::find(keys, column.key) != std::end(keys);
}

std::string reason_of(const ClaimRow& row) {
  return row.result == nullptr ? row.claim->claim.untestable : row.result->comparison.reason;
}

std::vector<Column<ClaimRow>> make_columns() {
  std::vector<Column<ClaimRow>> columns = {
      {"claim", "what the paper claims", [](const ClaimRow& r) { return r.claim->claim.text; }},
      {"claim_verdict", "verdict on the claim over all its rows: supported, contradicted, undecided or untestable",
       [](const ClaimRow& r) { return value_text(r.claim->verdict); }},
      {"relation", "what the claim says of two configurations",
       of_result([](const compare::RelationResult& r) { return r.relation; })},
      {"verdict", "verdict on the relation here",
       of_result([](const compare::RelationResult& r) { return r.verdict; })},
      {"reason", "why it cannot be tested, or a note", reason_of},
      {"metric", "metric of the claim",
       of_result([](const compare::RelationResult& r) { return std::string(r.comparison.metric.name); })},
      {"p_value", "two-sided p-value of the stated order; p_adjusted: by Holm over the claim",
       of_result([](const compare::RelationResult& r) { return r.p_value; })},
  };
  for (const Column<compare::Comparison>& column : compare_columns()) {
    if (is_left_out(column)) continue;
    columns.push_back({column.key, column.doc, of_result([text = column.text](const compare::RelationResult& r) {
                         return text(r.comparison);
                       })});
  }
  columns.push_back(version_column<ClaimRow>());
  columns.push_back(commit_column<ClaimRow>());
  return columns;
}

Verdict verdict_of(const CsvTable& table, const CsvRow& row, const char* column) {
  for (const Verdict verdict : {Verdict::supported, Verdict::contradicted, Verdict::undecided, Verdict::untestable}) {
    if (table.text(row, column) == name_of(verdict)) return verdict;
  }
  throw Error("{}:{}: column '{}' holds '{}', which is not a verdict on a claim", table.file, row.line, column,
              table.text(row, column));
}

compare::RelationResult result_of(const CsvTable& table, const CsvRow& row) {
  const auto text = [&](const char* column) { return table.text(row, column); };
  const auto number = [&](const char* column) { return table.number(row, column); };
  const auto count = [&](const char* column) { return table.count(row, column); };
  compare::RelationResult out;
  out.relation = text("relation"), out.p_value = number("p_value"), out.verdict = verdict_of(table, row, "verdict");
  compare::Comparison& c = out.comparison;
  c.run = text("run"), c.trace = text("trace"), c.prompt = text("prompt"), c.reason = text("reason");
  if (text("layer") != "all" && !text("layer").empty()) c.layer = count("layer");
  if (text("head") != "all" && !text("head").empty()) c.query_head = count("head");
  c.a = text("a"), c.budget_a = text("budget_a"), c.b = text("b"), c.budget_b = text("budget_b");
  c.test.mean_a = number("mean_a"), c.test.mean_b = number("mean_b"), c.test.difference = number("diff");
  if (!std::isnan(c.test.difference)) c.outcome = compare::Outcome::tied;  // compared
  c.test.interval = {number("diff_lo"), number("diff_hi")};
  c.ratio_interval = {number("ratio_lo"), number("ratio_hi")};
  c.p_adjusted = number("p_adjusted");
  c.test.blocks = static_cast<std::size_t>(count("blocks")), c.seeds = static_cast<std::size_t>(count("seeds"));
  return out;
}

}  // namespace

std::span<const Column<ClaimRow>> claim_columns() {
  static const std::vector<Column<ClaimRow>> table = make_columns();
  return table;
}

std::string claims_csv(std::span<const compare::ClaimResult> claims) {
  std::vector<ClaimRow> rows;
  for (const compare::ClaimResult& claim : claims) {
    if (claim.results.empty()) rows.push_back({&claim, nullptr});
    for (const compare::RelationResult& result : claim.results) rows.push_back({&claim, &result});
  }
  return csv_of(claim_columns(), std::span<const ClaimRow>(rows));
}

std::vector<compare::ClaimResult> claims_of(const CsvTable& table) {
  std::vector<compare::ClaimResult> claims;
  for (const CsvRow& row : table.rows) {
    const std::string& text = table.text(row, "claim");
    const Verdict verdict = verdict_of(table, row, "claim_verdict");
    if (claims.empty() || claims.back().claim.text != text) claims.emplace_back();
    compare::ClaimResult& claim = claims.back();
    claim.claim.text = text, claim.verdict = verdict;
    if (table.text(row, "relation").empty()) {
      claim.claim.untestable = table.text(row, "reason");
      continue;
    }
    if (const auto metric = replay::find_metric(table.text(row, "metric"))) claim.claim.metric = *metric;
    claim.results.push_back(result_of(table, row));
    claim.results.back().comparison.metric = info_of(claim.claim.metric);
  }
  return claims;
}

}  // namespace kvbench::report
