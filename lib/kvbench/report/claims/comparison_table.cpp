// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// Whether the rows come from different traces, or from different models, texts or forms of documents.
bool several_sources(std::span<const compare::Comparison> rows) {
  const auto source = [](const compare::Comparison& r) {
    return std::tie(r.sha256, r.eval.text, r.eval.context_tokens, r.eval.question);
  };
  return std::ranges::any_of(rows, [&](const compare::Comparison& r) { return source(r) != source(rows.front()); });
}

/// The kind of a row's means, in front of a cell of a table whose rows do not all have it.
std::string mean_cell(const compare::Comparison& row, double mean, bool mixed) {
  return (mixed && row.has_geometric_means() ? "geometric " : "") + short_number(mean);
}

DocTable table_of(std::span<const compare::Comparison> rows) {
  const bool ratios = rows.empty() || rows.front().metric.has_ratio();
  const MeanKinds kinds = mean_kinds(rows);
  DocTable out{.columns = {{"group"},
                           {"a"},
                           {"budget", true},
                           {"b"},
                           {"budget", true},
                           {kinds.word + " a", true},
                           {kinds.word + " b", true},
                           {ratios ? "a / b" : "a - b", true},
                           {"adjusted 95% interval", true},
                           {"tested over"},
                           {"p", true},
                           {"adjusted", true},
                           {"verdict"},
                           {"note"}}};
  const bool several = several_sources(rows);
  for (const compare::Comparison& r : rows) {
    std::vector<TableCell> cells = {place_text(r, several), r.a, r.budget_a.text(), r.b, r.budget_b.text()};
    if (r.outcome == compare::Outcome::skipped) {
      cells.resize(12);
    } else {
      const auto [a, b] = r.means();
      const auto [effect, interval] = r.effect();
      for (const double mean : {a, b}) cells.emplace_back(mean_cell(r, mean, kinds.mixed));
      cells.emplace_back(short_number(effect));
      cells.emplace_back(short_interval(interval.lo, interval.hi));
      cells.emplace_back(r.tested_over);
      for (const double p : {r.p_value, r.p_adjusted}) cells.emplace_back(short_number(p));
    }
    cells.emplace_back(std::string(name_of(r.outcome)));
    cells.emplace_back(r.reason);
    out.rows.push_back(std::move(cells));
  }
  return out;
}

std::string noted(int count, const char* what) { return count == 0 ? "" : fmt::format(", {} {}", count, what); }

/// The label that all rows share, or `otherwise`.
std::string common(std::span<const compare::Comparison> rows, std::string compare::Comparison::*label,
                   const char* otherwise) {
  const bool same =
      std::ranges::all_of(rows, [&](const compare::Comparison& r) { return r.*label == rows.front().*label; });
  return same && !rows.empty() ? rows.front().*label : otherwise;
}

}  // namespace

MeanKinds mean_kinds(std::span<const compare::Comparison> rows) {
  std::size_t geometric = 0, compared = 0;
  for (const compare::Comparison& row : rows) {
    if (row.outcome == compare::Outcome::skipped) continue;
    ++compared;
    geometric += row.has_geometric_means() ? 1 : 0;
  }
  return {.word = geometric > 0 && geometric == compared ? "geometric mean" : "mean",
          .mixed = geometric > 0 && geometric < compared};
}

std::vector<Block> comparison_blocks(std::span<const compare::Comparison> rows) {
  return {table_of(rows), Paragraph{compare_summary(rows)}};
}

std::string compare_summary(std::span<const compare::Comparison> rows) {
  std::array<int, 5> count{};
  for (const compare::Comparison& r : rows) ++count[static_cast<std::size_t>(r.outcome)];
  std::string a = common(rows, &compare::Comparison::a, "a"), b = common(rows, &compare::Comparison::b, "b");
  const bool one_pair = a != "a" && b != "b";
  if (a == b) a = "a", b = "b";  // two budgets of one configuration
  const std::size_t family = rows.empty() ? 0 : rows.front().family;
  return fmt::format("{} is better in {} of {} {}, {} in {}, {} not distinguishable{}; Holm over {} {} at 5 %.", a,
                     count[0], rows.size(), one_pair ? "groups" : "comparisons", b, count[1], count[2],
                     noted(count[3], "not tested") + noted(count[4], "skipped"), family,
                     family == 1 ? "hypothesis" : "hypotheses");
}

}  // namespace kvbench::report
