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

DocTable table_of(std::span<const compare::Comparison> rows) {
  const bool ratios = rows.empty() || rows.front().metric.has_ratio();
  DocTable out{.columns = {{"group"},
                           {"a"},
                           {"budget", true},
                           {"b"},
                           {"budget", true},
                           {"mean a", true},
                           {"mean b", true},
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
      const PairedTest& t = r.test;
      const auto [effect, interval] = r.effect();
      for (const double value : {t.mean_a, t.mean_b, effect}) cells.emplace_back(short_number(value));
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
