// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/compare_table.hpp>

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

namespace kvbench {
namespace {

/// A value that exists only where the comparison was not skipped.
template <class F>
auto where_compared(F value) {
  return [value](const Comparison& row) { return row.outcome == Outcome::skipped ? "" : value_text(value(row)); };
}
template <class T>
auto of_test(T PairedTest::*value) {
  return where_compared([value](const Comparison& row) { return row.test.*value; });
}

auto of_setting(std::string EvalSetting::*text) {
  return [text](const Comparison& row) { return row.eval.*text; };
}

/// Whether the rows come from different traces, or from different models, texts or forms of documents.
bool several_sources(std::span<const Comparison> rows) {
  const auto source = [](const Comparison& r) {
    return std::tie(r.sha256, r.eval.text, r.eval.context_tokens, r.eval.question);
  };
  return std::ranges::any_of(rows, [&](const Comparison& r) { return source(r) != source(rows.front()); });
}

/// Header and rows of the short tables.
TextRows brief_comparisons(std::span<const Comparison> rows) {
  TextRows out = {{"group", "a", "budget", "b", "budget", "mean a", "mean b", "a - b", "95% interval", "p", "adjusted",
                   "verdict", "note"}};
  const bool several = several_sources(rows);
  for (const Comparison& r : rows) {
    std::vector<std::string> cells = {place_text(r, several), r.a, r.budget_a, r.b, r.budget_b};
    if (r.outcome == Outcome::skipped) {
      cells.resize(11);
    } else {
      const PairedTest& t = r.test;
      for (const double value : {t.mean_a, t.mean_b, t.difference}) cells.push_back(short_number(value));
      cells.push_back(short_interval(t.interval.lo, t.interval.hi));
      for (const double p : {t.p_value, r.p_adjusted}) cells.push_back(short_number(p));
    }
    cells.emplace_back(name_of(r.outcome));
    cells.push_back(r.reason);
    out.push_back(std::move(cells));
  }
  return out;
}

/// Text columns are aligned to the left: group, a, b, verdict and note.
bool is_left_of_comparisons(std::size_t column) { return column < 2 || column == 3 || column > 10; }

/// The label that all rows share, or `otherwise`.
std::string common(std::span<const Comparison> rows, std::string Comparison::*label, const char* otherwise) {
  const bool same = std::ranges::all_of(rows, [&](const Comparison& r) { return r.*label == rows.front().*label; });
  return same && !rows.empty() ? rows.front().*label : otherwise;
}

}  // namespace

std::span<const Column<Comparison>> compare_columns() {
  static const std::vector<Column<Comparison>> table = {
      {"run", "run of a sweep file; empty elsewhere", text_of(&Comparison::run)},
      {"trace", "file name of the trace; empty for tables of kveval", text_of(&Comparison::trace)},
      {"sha256", "first 12 digits of the SHA-256 of the trace; for tables of kveval, of the model",
       text_of(&Comparison::sha256)},
      {"model", "model that the trace came from, or that was evaluated", text_of(&Comparison::model)},
      {"prompt", "prompt group, or all", text_of(&Comparison::prompt)},
      {"layer", "layer of the model, or all", text_of(&Comparison::layer, "all")},
      {"head", "query head, or all", text_of(&Comparison::query_head, "all")},
      {"protocol", "prefill, decode or stream", text_of(&Comparison::protocol)},
      {"text", "this column and the next five: as in tables of kveval, empty elsewhere; file name of the text",
       of_setting(&EvalSetting::text)},
      {"task", "task", of_setting(&EvalSetting::task)},
      {"question", "inside or outside the compressed context", of_setting(&EvalSetting::question)},
      {"context_tokens", "tokens of the context", of_setting(&EvalSetting::context_tokens)},
      {"inject", "where outputs of the method replace those of the model", of_setting(&EvalSetting::inject)},
      {"inject_layer", "the layer of one and upto", of_setting(&EvalSetting::inject_layer)},
      {"metric", "metric that is compared", [](const Comparison& r) { return r.metric.name; }},
      {"a", "one configuration", text_of(&Comparison::a)},
      {"budget_a", "its budget as given", text_of(&Comparison::budget_a)},
      {"b", "the other configuration; without --a and --b the best one of the group", text_of(&Comparison::b)},
      {"budget_b", "its budget as given", text_of(&Comparison::budget_b)},
      {"verdict", "a better, b better, not distinguishable, or skipped", text_of(&Comparison::outcome)},
      {"reason", "why there is no verdict, or a note on the verdict", text_of(&Comparison::reason)},
      {"mean_a", "mean of a over the pairs", of_test(&PairedTest::mean_a)},
      {"mean_b", "mean of b over the pairs", of_test(&PairedTest::mean_b)},
      {"diff", "mean of a - b over the pairs", of_test(&PairedTest::difference)},
      {"diff_lo", "lower end of its 95 % bootstrap interval; empty where there are fewer than two units",
       where_compared([](const Comparison& r) { return r.test.interval.lo; })},
      {"diff_hi", "upper end of this interval", where_compared([](const Comparison& r) { return r.test.interval.hi; })},
      {"ratio", "mean_a / mean_b; empty for metrics that may be negative",
       where_compared([](const Comparison& r) { return r.ratio(); })},
      {"ratio_lo", "lower end of its 95 % bootstrap interval; empty where there are fewer than two units",
       where_compared([](const Comparison& r) { return r.ratio_interval.lo; })},
      {"ratio_hi", "upper end of this interval",
       where_compared([](const Comparison& r) { return r.ratio_interval.hi; })},
      {"p_value", "two-sided p-value of the data, if a and b were equal on average", of_test(&PairedTest::p_value)},
      {"p_adjusted", "p_value adjusted by Holm over the call",
       where_compared([](const Comparison& r) { return r.p_adjusted; })},
      {"p_least", "smallest p_value that this number of units can give", of_test(&PairedTest::p_least)},
      {"family", "hypotheses that Holm counted", text_of(&Comparison::family)},
      {"pairs", "number of (query, query head, seed) triples, or of documents, with both values",
       text_of(&Comparison::pairs)},
      {"left_out", "number of triples or documents to which the metric does not apply", text_of(&Comparison::left_out)},
      {"blocks",
       "number of independent units: blocks of 16 neighbouring queries, where all heads of a prompt share a block; "
       "documents "
       "for tables of kveval",
       of_test(&PairedTest::blocks)},
      {"seeds", "number of pairs of seeds; empty where neither configuration uses random numbers",
       [](const Comparison& r) { return r.seeds > 0 ? fmt::format("{}", r.seeds) : ""; }},
      version_column<Comparison>(),
      commit_column<Comparison>(),
  };
  return table;
}

std::string compare_csv(std::span<const Comparison> rows) { return csv_of(compare_columns(), rows); }

std::string compare_markdown(std::span<const Comparison> rows) {
  return markdown_rows(brief_comparisons(rows), is_left_of_comparisons) + "\n" + compare_summary(rows);
}

std::string compare_terminal(std::span<const Comparison> rows) {
  return aligned_rows(brief_comparisons(rows), is_left_of_comparisons) + compare_summary(rows);
}

std::string compare_summary(std::span<const Comparison> rows) {
  std::array<int, 4> count{};
  for (const Comparison& r : rows) ++count[static_cast<std::size_t>(r.outcome)];
  std::string a = common(rows, &Comparison::a, "a"), b = common(rows, &Comparison::b, "b");
  const bool one_pair = a != "a" && b != "b";
  if (a == b) a = "a", b = "b";  // two budgets of one configuration
  const std::size_t family = rows.empty() ? 0 : rows.front().family;
  return fmt::format("{} is better in {} of {} {}, {} in {}, {} not distinguishable{}; Holm over {} {} at 5 %.\n", a,
                     count[0], rows.size(), one_pair ? "groups" : "comparisons", b, count[1], count[2],
                     count[3] > 0 ? fmt::format(", {} skipped", count[3]) : "", family,
                     family == 1 ? "hypothesis" : "hypotheses");
}

}  // namespace kvbench
