// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/eval/figures.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

DotRow dot_of(const evidence::Mark& mark, const DamageOf& one, const EvalSection& section) {
  const EvalRow& row = *one.of_texts.front();
  const int own = section.style_of(row);
  const std::string family(methods::family_of(row.method));
  const char* tie = mark.tied == true ? ", not told from the best" : "";
  return {.name = mark.name,
          .group = marks::is_own(own) ? mark.name : family,
          .style = marks::is_own(own) ? own : marks::family_style(family),
          .value = mark.ratio,
          .lo = mark.interval.lo,
          .hi = mark.interval.hi,
          .text = short_number(mark.mean) + (mark.tied == true ? " ~" : ""),
          .tip = fmt::format("{}: KL {}, {} times that of the best{}", mark.name, short_number(mark.mean),
                             interval_text(mark.ratio, mark.interval.lo, mark.interval.hi), tie)};
}

/// The range of the ratios, with those ends of intervals that are within a factor of ten of it: of few documents,
/// intervals over many decades would press all ratios into a point.
Extent extent_of(const std::vector<DotRow>& rows) {
  constexpr double reach = 10;
  std::vector<double> values{1};
  for (const DotRow& row : rows) values.push_back(row.value);
  const auto [lo, hi] = log_extent(values);
  for (const DotRow& row : rows) {
    if (!(row.value >= lo && row.value <= hi)) continue;
    for (const double end : {row.lo, row.hi}) {
      if (std::isfinite(end)) values.push_back(std::clamp(end, lo / reach, hi * reach));
    }
  }
  return log_extent(values);
}

Drawing dots_of(const DamageStanding& at, const EvalSection& section) {
  const EvalRow& row = *at.best().of_texts.front();
  DotPlot plot{.title = fmt::format("KL on the task {} at {}", row.task, budget_words(row.budget)),
               .description = "KL of each method, relative to the best, in ascending order"};
  for (const evidence::Mark* mark : at.standing.ranked())
    plot.rows.push_back(dot_of(*mark, at.all[mark->row], section));
  plot.x = log_axis(extent_of(plot.rows), "KL, times that of the best method");
  return draw(plot);
}

}  // namespace

Figure standing_figure(const TextsTogether& texts) {
  Figure figure{.title = "Where the methods stand: " + texts.scope,
                .caption =
                    "KL relative to that of the best method, with the intervals of the tests against it over the "
                    "documents of all texts, adjusted for the number of methods; right: geometric mean KL in "
                    "nats, ~: not told from the best. An interval that reaches the edge goes on beyond it."};
  figure.alone = fmt::format(
      "{}, {} tokens. Bars: adjusted 95 % intervals; right: geometric mean KL in nats; ~: not told "
      "from the best.",
      texts.scope, texts.sections.front()->context);
  for (const DamageStanding& at : damage_standings(texts.rows()))
    figure.drawings.push_back(dots_of(at, *texts.sections.front()));
  return figure;
}

}  // namespace kvbench::report
