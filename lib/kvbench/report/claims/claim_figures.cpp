// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr double level_margin = 1.1;

/// A value of one line of one drawing.
struct ClaimPoint {
  std::string place, line;
  Budget budget;
  double value, lo = NAN, hi = NAN;
};

double position_of(const Budget& budget) {
  return budget.is_share() ? 100 * budget.share() : static_cast<double>(budget.resolve(0, 1));
}

template <class T>
std::vector<T> distinct(const std::vector<ClaimPoint>& points, T ClaimPoint::*member) {
  Distinct<T> values;
  for (const ClaimPoint& point : points) values.add(point.*member);
  return values.list();
}

Axis budget_axis(const std::vector<ClaimPoint>& points) {
  Axis axis{.scale = Scale::log, .lo = INFINITY, .hi = 0, .title = "budget"};
  for (const Budget& budget : distinct(points, &ClaimPoint::budget)) {
    const double x = position_of(budget);
    axis.lo = std::min(axis.lo, x / 1.12), axis.hi = std::max(axis.hi, x * 1.12);
    axis.ticks.push_back({x, budget.text()});
  }
  std::ranges::stable_sort(axis.ticks, {}, &Tick::value);
  return axis;
}

/// Includes the levels.
Axis value_axis(const std::vector<ClaimPoint>& points, const std::string& title, const std::vector<double>& levels) {
  std::vector<double> values;
  for (const ClaimPoint& point : points) {
    for (const double value : {point.value, point.lo, point.hi}) values.push_back(value);
  }
  Extent extent = log_extent(values);
  for (const double level : levels)
    extent = {std::min(extent.lo, level / level_margin), std::max(extent.hi, level * level_margin)};
  return log_axis(extent, title);
}

ChartLine line_of(const std::vector<ClaimPoint>& points, const std::string& place, const std::string& name, int style) {
  ChartLine line{.name = name, .style = style};
  if (name.find(" / ") == name.npos) line.name = compare::configuration_of(name).method;  // else it is a ratio of two
  line.detail = name.substr(line.name.size());
  for (const ClaimPoint& p : points) {
    if (p.place != place || p.line != name) continue;
    line.points.push_back({position_of(p.budget), p.value, p.lo, p.hi,
                           fmt::format("{}, {}: {}", name, p.budget, interval_text(p.value, p.lo, p.hi))});
  }
  std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
  return line;
}

/// One drawing per place, with the same axes and lines across at these levels.
Figure figure_of(const std::vector<ClaimPoint>& points, const std::string& what, const std::string& caption,
                 const std::vector<double>& levels) {
  Figure figure{.title = what + " against budget", .caption = caption};
  figure.numbers = {
      .title = "Numbers", .columns = {{"place"}, {"line"}, {"budget"}, {what, true}}, .folded = true, .merged = 2};
  const std::vector<std::string> lines = distinct(points, &ClaimPoint::line);
  for (const std::string& place : distinct(points, &ClaimPoint::place)) {
    LineChart chart{.title = place,
                    .description = figure.title,
                    .x = budget_axis(points),
                    .y = value_axis(points, what, levels),
                    .levels = levels,
                    .apart = true};
    for (std::size_t i = 0; i < lines.size(); ++i) {
      chart.lines.push_back(line_of(points, place, lines[i], static_cast<int>(i)));
      if (chart.lines.back().points.empty()) chart.lines.pop_back();
    }
    figure.drawings.push_back(draw(chart));
  }
  for (const ClaimPoint& p : points)
    figure.numbers.rows.push_back({p.place, p.line, p.budget.text(), interval_text(p.value, p.lo, p.hi)});
  return figure;
}

}  // namespace

std::vector<Block> claim_figures(const compare::ClaimResult& claim) {
  std::vector<ClaimPoint> means, ratios;
  const auto add_mean = [&](ClaimPoint point) {
    const auto same = [&](const ClaimPoint& p) {
      return p.place == point.place && p.line == point.line && p.budget == point.budget;
    };
    if (std::ranges::none_of(means, same)) means.push_back(std::move(point));
  };
  const auto other_trace = [&](const compare::RelationResult& r) {
    return r.comparison.trace != claim.results.front().comparison.trace;
  };
  const bool several = std::ranges::any_of(claim.results, other_trace);
  const bool geometric = std::ranges::all_of(claim.results, [](const compare::RelationResult& r) {
    return r.comparison.outcome == compare::Outcome::skipped || r.comparison.has_geometric_means();
  });
  for (const compare::RelationResult& result : claim.results) {
    compare::Comparison c = result.comparison;
    if (c.outcome == compare::Outcome::skipped) continue;
    c.run.clear();  // runs share a drawing
    const std::string place = place_text(c, several);
    const auto [a, b] = geometric ? c.means() : std::pair(c.test.mean_a, c.test.mean_b);
    add_mean({place, c.a, c.budget_a, a});
    add_mean({place, c.b, c.budget_b, b});
    const auto [ratio, interval] = c.effect();
    ratios.push_back({place, c.a + " / " + c.b, c.budget_a, ratio, interval.lo, interval.hi});
  }
  if (means.empty()) return {};
  const compare::Comparison& one = claim.results.front().comparison;
  const std::string source = fmt::format("{}. {}, {}.", claim.claim.text, one.model, one.trace);
  std::vector<Block> out = {
      figure_of(means, fmt::format("{}mean {}", geometric ? "geometric " : "", claim.claim.metric.name),
                geometric
                    ? "Geometric means over layers and texts of the means over queries and seeds, which the tests "
                      "compare."
                    : "Means over the queries and seeds that the tests compare.",
                {}),
      figure_of(ratios, "ratio", "Bars: adjusted 95 % interval over the units of the tests. Dashed line: equal.", {1})};
  for (Block& block : out) {
    Figure& figure = std::get<Figure>(block);
    figure.alone = source + " " + figure.caption;
  }
  return out;
}

}  // namespace kvbench::report
