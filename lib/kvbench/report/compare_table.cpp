// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/compare_table.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {
namespace {

using Text = std::function<std::string(const Comparison&)>;

Text plain(std::string Comparison::*field) {
  return [field](const Comparison& row) { return row.*field; };
}
template <class T>
Text or_all(std::optional<T> Comparison::*field) {
  return [field](const Comparison& row) { return row.*field ? fmt::format("{}", *(row.*field)) : "all"; };
}
/// A value that exists only where the two were compared.
Text measured(std::function<double(const Comparison&)> value) {
  return [value = std::move(value)](const Comparison& row) {
    return row.outcome == Outcome::skipped ? "" : number_text(value(row));
  };
}

std::vector<TextColumn<Comparison>> make_columns() {
  return {
      {"run", "run of a sweep file; empty elsewhere", plain(&Comparison::run)},
      {"trace", "file name of the trace", plain(&Comparison::trace)},
      {"sha256", "first 12 digits of the SHA-256 of the trace", plain(&Comparison::sha256)},
      {"model", "model that the trace came from", plain(&Comparison::model)},
      {"prompt", "prompt group, or all", plain(&Comparison::prompt)},
      {"layer", "layer of the model, or all", or_all(&Comparison::layer)},
      {"head", "query head, or all", or_all(&Comparison::query_head)},
      {"protocol", "prefill, decode or stream", plain(&Comparison::protocol)},
      {"metric", "what is compared", [](const Comparison& r) { return std::string(name_of(r.metric)); }},
      {"a", "one configuration", plain(&Comparison::a)},
      {"budget_a", "its budget as given", plain(&Comparison::budget_a)},
      {"b", "the other; without --a and --b the best of the cell", plain(&Comparison::b)},
      {"budget_b", "its budget as given", plain(&Comparison::budget_b)},
      {"verdict", "a better, b better, not distinguishable, or skipped",
       [](const Comparison& r) { return std::string(name_of(r.outcome)); }},
      {"reason", "why there is no verdict; else what to know about it", plain(&Comparison::reason)},
      {"mean_a", "mean of a over the pairs", measured([](const Comparison& r) { return r.test.mean_a; })},
      {"mean_b", "mean of b over the pairs", measured([](const Comparison& r) { return r.test.mean_b; })},
      {"diff", "mean of a - b over the pairs", measured([](const Comparison& r) { return r.test.difference; })},
      {"diff_lo", "lower end of its 95 % bootstrap interval", measured([](const Comparison& r) { return r.test.interval.lo; })},
      {"diff_hi", "upper end of it", measured([](const Comparison& r) { return r.test.interval.hi; })},
      {"p_value", "two-sided, of the data if a and b were equal on average",
       measured([](const Comparison& r) { return r.test.p_value; })},
      {"p_adjusted", "the same, adjusted by Holm over the call", measured([](const Comparison& r) { return r.p_adjusted; })},
      {"p_least", "the smallest p_value that so many blocks can give",
       measured([](const Comparison& r) { return r.test.p_least; })},
      {"family", "hypotheses that Holm counted", [](const Comparison& r) { return fmt::format("{}", r.family); }},
      {"pairs", "(query, query head, seed) triples with both values",
       [](const Comparison& r) { return fmt::format("{}", r.pairs); }},
      {"left_out", "triples to which the metric does not apply",
       [](const Comparison& r) { return fmt::format("{}", r.left_out); }},
      {"blocks", "of 16 neighbouring queries, all heads of a prompt together",
       measured([](const Comparison& r) { return static_cast<double>(r.test.blocks); })},
      {"seeds", "pairs of seeds; empty where neither draws",
       [](const Comparison& r) { return r.seeds > 0 ? fmt::format("{}", r.seeds) : ""; }},
      {"version", "kvbench version", [](const Comparison&) { return std::string(version()); }},
      {"commit", "commit that kvbench was built from", [](const Comparison&) { return std::string(commit()); }},
  };
}

using Cells = std::vector<std::string>;

std::string where(const Comparison& r, bool several) {
  std::string out = several ? fmt::format("{} ", r.trace.empty() ? r.sha256 : r.trace) : "";
  if (!r.run.empty()) out = r.run + " " + out;
  out += "prompt " + r.prompt;
  if (r.layer) out += fmt::format(", layer {}", *r.layer);
  return r.query_head ? out + fmt::format(", head {}", *r.query_head) : out;
}

/// Header and cells of the short tables.
std::vector<Cells> brief_rows(std::span<const Comparison> rows) {
  std::vector<Cells> out = {
      {"cell", "a", "budget", "b", "budget", "mean a", "mean b", "a - b", "95% interval", "p", "adjusted", "verdict", "note"}};
  const bool several = std::ranges::any_of(rows, [&](const Comparison& r) { return r.sha256 != rows.front().sha256; });
  for (const Comparison& r : rows) {
    Cells cells = {where(r, several), r.a, r.budget_a, r.b, r.budget_b};
    if (r.outcome == Outcome::skipped) {
      cells.resize(11);
    } else {
      const PairedTest& t = r.test;
      for (const double value : {t.mean_a, t.mean_b, t.difference}) cells.push_back(short_number(value));
      cells.push_back(fmt::format("{}..{}", short_number(t.interval.lo), short_number(t.interval.hi)));
      for (const double p : {t.p_value, r.p_adjusted}) cells.push_back(short_number(p));
    }
    cells.emplace_back(name_of(r.outcome));
    cells.push_back(r.reason);
    out.push_back(std::move(cells));
  }
  return out;
}

/// Words stand at the left: cell, a, b, verdict and note.
bool is_left(std::size_t column) { return column < 2 || column == 3 || column > 10; }

/// The label that all rows share, or `otherwise`.
std::string common(std::span<const Comparison> rows, std::string Comparison::*label, const char* otherwise) {
  const bool same = std::ranges::all_of(rows, [&](const Comparison& r) { return r.*label == rows.front().*label; });
  return same && !rows.empty() ? rows.front().*label : otherwise;
}

}  // namespace

std::span<const TextColumn<Comparison>> compare_columns() {
  static const std::vector<TextColumn<Comparison>> table = make_columns();
  return table;
}

std::string compare_csv(std::span<const Comparison> rows) { return csv_of(compare_columns(), rows); }

std::string compare_markdown(std::span<const Comparison> rows) {
  std::string out;
  for (const Cells& cells : brief_rows(rows)) {
    const bool header = out.empty();
    for (const std::string& cell : cells) {
      out += "| ";
      for (const char c : cell) {
        if (c == '|') out += '\\';
        out += c == '\n' ? ' ' : c;
      }
      out += ' ';
    }
    out += "|\n";
    for (std::size_t c = 0; header && c < cells.size(); ++c) out += is_left(c) ? "| --- " : "| ---: ";
    if (header) out += "|\n";
  }
  return out + "\n" + compare_summary(rows);
}

std::string compare_terminal(std::span<const Comparison> rows) {
  const std::vector<Cells> table = brief_rows(rows);
  std::vector<std::size_t> width(table[0].size());
  for (const Cells& cells : table) {
    for (std::size_t c = 0; c < cells.size(); ++c) width[c] = std::max(width[c], cells[c].size());
  }
  std::string out;
  for (const Cells& cells : table) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) out += "  ";
      out += is_left(c) ? fmt::format("{:<{}}", cells[c], width[c]) : fmt::format("{:>{}}", cells[c], width[c]);
    }
    while (out.back() == ' ') out.pop_back();
    out += '\n';
  }
  return out + compare_summary(rows);
}

std::string compare_summary(std::span<const Comparison> rows) {
  std::array<int, 4> count{};
  for (const Comparison& r : rows) ++count[static_cast<std::size_t>(r.outcome)];
  std::string a = common(rows, &Comparison::a, "a"), b = common(rows, &Comparison::b, "b");
  const bool one_pair = a != "a" && b != "b";
  if (a == b) a = "a", b = "b";  // two budgets of one configuration
  const std::size_t family = rows.empty() ? 0 : rows.front().family;
  return fmt::format("{} is better in {} of {} {}, {} in {}, {} not distinguishable{}; Holm over {} {} at 5 %.\n", a, count[0],
                     rows.size(), one_pair ? "cells" : "comparisons", b, count[1], count[2],
                     count[3] > 0 ? fmt::format(", {} skipped", count[3]) : "", family,
                     family == 1 ? "hypothesis" : "hypotheses");
}

}  // namespace kvbench
