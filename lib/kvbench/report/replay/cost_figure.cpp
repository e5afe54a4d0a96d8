// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/cost_figure.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/report/drawing/line_chart.hpp>
#include <kvbench/report/replay/series.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

struct PlottedCost {
  const char *title, *x_title;
  double ReplayRow::*of;
};
constexpr PlottedCost plotted_costs[] = {
    {"Error against bytes held", "bytes held / bytes of the full cache", &ReplayRow::held},
    {"Error against bytes read per query", "bytes read per query / bytes of the full cache", &ReplayRow::read},
};

constexpr double least_span = 4;  // of the axis, so that costs that are nearly equal look so

constexpr double least_cost = 1e-9, most_cost = 1e9;  // relative to the full cache; no cache is outside

/// `exact` is the origin of both axes: the cost of the full cache, without an error.
bool drawn(const Series& series, const ReplayRow& r, const PlottedCost& cost) {
  return series.method != "exact" && r.ok() && r.*cost.of > least_cost && r.*cost.of < most_cost &&
         !std::isnan(r.error);
}

Axis error_axis(const std::vector<Series>& all, const PlottedCost& cost) {
  std::vector<double> values;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (drawn(series, *r, cost)) values.insert(values.end(), {r->error, r->error_lo, r->error_hi});
    }
  }
  const Extent extent = log_extent(values);
  return {Scale::log, extent.lo, extent.hi, log_ticks(extent.lo, extent.hi), "mean relative error"};
}

Axis cost_axis(const std::vector<Series>& all, const PlottedCost& cost) {
  double lo = INFINITY, hi = 0;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (!drawn(series, *r, cost)) continue;
      lo = std::min(lo, 100 * r->*cost.of);
      hi = std::max(hi, 100 * r->*cost.of);
    }
  }
  if (lo > hi) lo = hi = 100;
  const double margin = std::max(1.12, std::sqrt(least_span * lo / hi));
  Axis axis{Scale::log, lo / margin, hi * margin, {}, cost.x_title};
  axis.ticks = log_ticks(axis.lo, axis.hi);
  for (Tick& tick : axis.ticks) tick.label += tick.label.empty() ? "" : "%";
  return axis;
}

std::string tip(const Series& series, const ReplayRow& r) {
  const char* tie = r.tied == true ? r.best == series.name() ? ", best" : ", not distinguishable from the best" : "";
  return fmt::format("{}, budget {}: error {}, holds {} and reads {} of the full cache{}", series.name(), r.budget,
                     interval_text(r.error, r.error_lo, r.error_hi), short_number(r.held), short_number(r.read), tie);
}

ChartLine line_of(const Series& series, const PlottedCost& cost, const std::set<const ReplayRow*>& frontier) {
  ChartLine line{.name = series.method, .detail = series.params, .style = series.style, .points = {}};
  const bool best =
      std::ranges::any_of(series.rows, [&](const ReplayRow* r) { return r->tied == true || frontier.contains(r); });
  line.role = series.reference ? LineRole::reference : best ? LineRole::shown : LineRole::beaten;
  for (const ReplayRow* r : series.rows) {
    if (drawn(series, *r, cost))
      line.points.push_back({100 * r->*cost.of, r->error, r->error_lo, r->error_hi, tip(series, *r)});
  }
  std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
  return line;
}

LineChart chart_of(const std::vector<Series>& all, const PlottedCost& cost) {
  LineChart chart{.title = cost.title,
                  .description = "Mean relative error of every method against its cost",
                  .x = cost_axis(all, cost),
                  .y = error_axis(all, cost),
                  .lines = {},
                  .frontier = {},
                  .width = 450,
                  .plot_height = 300};
  const std::vector<const ReplayRow*> frontier = frontier_of(all, cost.of);
  for (const ReplayRow* r : frontier) chart.frontier.push_back({100 * r->*cost.of, r->error, NAN, NAN, ""});
  const std::set<const ReplayRow*> best(frontier.begin(), frontier.end());
  for (const Series& series : all) chart.lines.push_back(line_of(series, cost, best));
  chart.plot_height = std::max(chart.plot_height, height_for_labels(chart));
  return chart;
}

}  // namespace

Figure cost_figure(const std::vector<Series>& all, const std::string& title) {
  Figure figure{
      .title = title,
      .drawings = {},
      .caption = fmt::format(
          "Mean of |z - z*| / |z*| over all queries, heads, layers and seeds; bars: its 95 % interval. Strong line: "
          "the rows that no other row beats by a lower error at no more than {} times the bytes. Coloured: their "
          "methods, and those not distinguishable from the best of a budget; grey rings: all other methods; grey "
          "crosses: references. Triangles at an edge: values outside the axis.",
          compare::equal_cost),
      .numbers = {}};
  double height = 0;
  std::vector<LineChart> charts;
  for (const PlottedCost& cost : plotted_costs) {
    charts.push_back(chart_of(all, cost));
    const bool points =
        std::ranges::any_of(charts.back().lines, [](const ChartLine& line) { return !line.points.empty(); });
    if (!points) charts.pop_back();
  }
  for (const LineChart& chart : charts) height = std::max(height, chart.plot_height);
  for (LineChart& chart : charts) {
    chart.plot_height = height;
    figure.drawings.push_back(draw(chart));
  }
  return figure;
}

}  // namespace kvbench::report
