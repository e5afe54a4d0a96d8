// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <array>
#include <functional>
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

/// A cell that rows without a comparison leave empty.
auto unless_skipped(auto of) {
  return [of](const compare::Comparison& r) {
    return r.outcome == compare::Outcome::skipped ? std::string() : std::string(std::invoke(of, r));
  };
}

DocTable table_of(std::span<const compare::Comparison> rows) {
  using Row = compare::Comparison;
  const bool ratios = rows.empty() || rows.front().metric.has_ratio(), several = several_sources(rows);
  const MeanKinds kinds = mean_kinds(rows);
  const auto mean = [&kinds](double mean_of, const Row& r) {
    return (kinds.mixed && r.has_geometric_means() ? "geometric " : "") + short_number(mean_of);
  };
  return filled<Row>(
      {},
      {{{"group"}, [=](const Row& r) { return place_text(r, several); }},
       {{"a"}, &Row::a},
       {{"budget", true}, &Row::budget_a},
       {{"b"}, &Row::b},
       {{"budget", true}, &Row::budget_b},
       {{kinds.word + " a", true}, unless_skipped([&](const Row& r) { return mean(r.means().first, r); })},
       {{kinds.word + " b", true}, unless_skipped([&](const Row& r) { return mean(r.means().second, r); })},
       {{ratios ? "a / b" : "a - b", true},
        unless_skipped([](const Row& r) { return short_number(r.effect().first); })},
       {{"adjusted 95% interval", true},
        unless_skipped([](const Row& r) { return short_interval(r.effect().second.lo, r.effect().second.hi); })},
       {{"tested over"}, unless_skipped(&Row::tested_over)},
       {{"p", true}, unless_skipped([](const Row& r) { return short_number(r.p_value); })},
       {{"adjusted", true}, unless_skipped([](const Row& r) { return short_number(r.p_adjusted); })},
       {{"verdict"}, &Row::outcome},
       {{"note"}, &Row::reason}},
      rows);
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
