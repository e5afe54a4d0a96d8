// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>

#include <algorithm>

namespace kvbench::report {
namespace {

using compare::Comparison;

/// A value that exists only where the comparison was not skipped.
template <class F>
Value<Comparison> where_compared(F of) {
  return value_where<Comparison>([](const Comparison& row) { return row.outcome != compare::Outcome::skipped; }, of);
}
template <class T>
Value<Comparison> of_test(T PairedTest::*value) {
  return where_compared([value](auto& row) -> auto& { return row.test.*value; });
}

Value<Comparison> of_setting(std::string compare::EvalSetting::*text) {
  return value_where<Comparison>(
      always, [text](auto& row) -> auto& { return row.eval.*text; });
}

}  // namespace

std::span<const Column<Comparison>> compare_columns() {
  static const std::vector<Column<Comparison>> table = {
      {"run", "run of a sweep file; empty elsewhere", needed(value_of(&Comparison::run))},
      {"trace", "file name of the trace; empty for tables of kveval", needed(value_of(&Comparison::trace))},
      {"sha256", "first 12 digits of the SHA-256 of the trace; for tables of kveval, of the model",
       value_of(&Comparison::sha256)},
      {"model", "model that the trace came from, or that was evaluated", value_of(&Comparison::model)},
      {"prompt", "prompt group, or all", needed(value_of(&Comparison::prompt))},
      {"layer", "layer of the model, or all", needed(value_of(&Comparison::layer, "all"))},
      {"head", "query head, or all", needed(value_of(&Comparison::query_head, "all"))},
      {"protocol", "prefill, decode or stream", value_of(&Comparison::protocol)},
      {"text", "this column and the next twelve: as in tables of kveval, empty elsewhere; file name of the text",
       of_setting(&compare::EvalSetting::text)},
      {"task", "task", of_setting(&compare::EvalSetting::task)},
      {"question", "inside or outside the compressed context", of_setting(&compare::EvalSetting::question)},
      {"context_tokens", "tokens of the context", of_setting(&compare::EvalSetting::context_tokens)},
      {"inject", "where outputs of the method replace those of the model", of_setting(&compare::EvalSetting::inject)},
      {"inject_layer", "the layer of one and upto", of_setting(&compare::EvalSetting::inject_layer)},
      {"method_layers", "layers in which methods run", of_setting(&compare::EvalSetting::method_layers)},
      {"model_layers", "number of layers of the model", of_setting(&compare::EvalSetting::model_layers)},
      {"weights", "f32, or file", of_setting(&compare::EvalSetting::weights)},
      {"kv_dtype", "element type of the cache", of_setting(&compare::EvalSetting::kv_dtype)},
      {"protect", "tokens that are kept exactly", of_setting(&compare::EvalSetting::protect)},
      {"decoded", "treatment of decoded tokens", of_setting(&compare::EvalSetting::decoded)},
      {"generate", "tokens of an answer, at most, and how it was sampled", of_setting(&compare::EvalSetting::generate)},
      {"metric", "metric that is compared",
       printed<Comparison>([](const Comparison& r) { return std::string(r.metric.name); })},
      {"a", "one configuration", needed(value_of(&Comparison::a))},
      {"budget_a", "its budget as given", needed(value_of(&Comparison::budget_a))},
      {"b", "the other configuration; without --a and --b the best one of the group", needed(value_of(&Comparison::b))},
      {"budget_b", "its budget as given", needed(value_of(&Comparison::budget_b))},
      {"verdict", "a better, b better, not distinguishable, not tested, or skipped", value_of(&Comparison::outcome)},
      {"reason", "why there is no verdict, or a note on the verdict", value_of(&Comparison::reason)},
      {"mean_a", "mean of a over the pairs", needed(of_test(&PairedTest::mean_a))},
      {"mean_b", "mean of b over the pairs", needed(of_test(&PairedTest::mean_b))},
      {"diff", "mean of a - b over the pairs", needed(of_test(&PairedTest::difference))},
      {"diff_lo",
       "lower end of its bootstrap interval, at the level at which Holm tested the row (95 % of a single row); empty "
       "where there are fewer than two units",
       needed(where_compared([](auto& r) -> auto& { return r.test.interval.lo; }))},
      {"diff_hi", "upper end of this interval",
       needed(where_compared([](auto& r) -> auto& { return r.test.interval.hi; }))},
      {"ratio", "mean_a / mean_b; empty for metrics that may be negative",
       where_compared([](const Comparison& r) { return r.ratio(); })},
      {"ratio_lo", "lower end of its bootstrap interval at this level; empty where there are fewer than two units",
       needed(where_compared([](auto& r) -> auto& { return r.ratio_interval.lo; }))},
      {"ratio_hi", "upper end of this interval",
       needed(where_compared([](auto& r) -> auto& { return r.ratio_interval.hi; }))},
      {"over_places_a",
       "geometric mean over layers and texts of the mean of a on each, by which over_places compares; the mean of "
       "these "
       "for metrics that may be negative; empty where layers and texts are no sample of others",
       where_compared(&Comparison::places_a)},
      {"over_places_b", "the same of b", where_compared(&Comparison::places_b)},
      {"over_places", "over_places_a / over_places_b; for metrics that may be negative over_places_a - over_places_b",
       where_compared(&Comparison::over_places)},
      {"over_places_lo",
       "lower end of its interval at this level, for layers and texts like these: it holds \"no difference\" where "
       "the verdict is \"not distinguishable\"",
       where_compared([](auto& r) -> auto& { return r.over_places_interval.lo; })},
      {"over_places_hi", "upper end of this interval",
       where_compared([](auto& r) -> auto& { return r.over_places_interval.hi; })},
      {"tested_over", "units of the test: layers and texts, blocks of queries, or documents; empty where none was made",
       value_of(&Comparison::tested_over)},
      of_share<Comparison>({"p_value", "two-sided p-value of this test, if a and b were equal on average",
                            where_compared(&Comparison::p_value)}),
      of_share<Comparison>({"p_adjusted", "p_value adjusted by Holm over the call",
                            needed(where_compared([](auto& r) -> auto& { return r.p_adjusted; }))}),
      of_share<Comparison>(
          {"p_least", "smallest p_value that this number of units can give", of_test(&PairedTest::p_least)}),
      {"family", "hypotheses that Holm counted", value_of(&Comparison::family)},
      {"pairs", "number of (query, query head, seed) triples, or of documents, with both values",
       value_of(&Comparison::pairs)},
      {"left_out", "number of triples or documents to which the metric does not apply",
       value_of(&Comparison::left_out)},
      {"blocks",
       "number of independent units: blocks of 16 neighbouring queries, where all heads of a prompt share a block; "
       "documents for tables of kveval",
       needed(of_test(&PairedTest::blocks))},
      {"seeds", "number of pairs of seeds; empty where neither configuration uses random numbers",
       needed(value_where<Comparison>([](const Comparison& r) { return r.seeds > 0; }, &Comparison::seeds))},
      version_column<Comparison>(),
      commit_column<Comparison>(),
  };
  return table;
}

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
