// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>

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
      {"text", "this column and the next eleven: as in tables of kveval, empty elsewhere; file name of the text",
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

}  // namespace kvbench::report
