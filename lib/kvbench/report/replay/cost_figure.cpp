// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/figures.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

struct PlottedCost {
  const char *title, *x_title;
  double (replay::Costs::*of)() const;
  CostKind kind;
};
constexpr PlottedCost plotted_costs[] = {
    {"against bytes held", "bytes held / bytes of the full cache", &replay::Costs::held, CostKind::memory},
    {"against bytes read per query", "bytes read per query / bytes of the full cache", &replay::Costs::read,
     CostKind::read},
};

constexpr std::size_t most_named = 16;
constexpr double page_width = 570;  // px: of the first drawing, which stands alone; a narrow screen has it whole

constexpr double least_cost = 1e-9, most_cost = 1e9;  // relative to the full cache; no cache is outside

/// Budgets that limit the same cost, smallest first.
using BudgetGroup = std::vector<Budget>;

std::vector<BudgetGroup> budget_groups(const std::vector<Budget>& budgets) {
  OrderedMap<std::optional<CostKind>, BudgetGroup> groups;
  for (const Budget& budget : budgets) groups[budget.cost()].push_back(budget);
  std::vector<BudgetGroup> out;
  for (auto& [cost, group] : groups.items()) out.push_back(std::move(group));
  return out;
}

/// The series with their rows at these budgets that can be drawn. `exact` is the origin of both axes: the cost of the
/// full cache, without an error.
std::vector<Series> at_budgets(const std::vector<Series>& all, const BudgetGroup& budgets) {
  std::vector<Series> out;
  for (const Series& series : all) {
    if (series.method == "exact") continue;
    Series shown = series;
    std::erase_if(shown.rows, [&](const ReplayRow* r) {
      return !r->ok() || std::isnan(r->error) || std::ranges::find(budgets, r->budget) == budgets.end();
    });
    if (!shown.rows.empty()) out.push_back(std::move(shown));
  }
  return out;
}

Axis error_axis(const std::vector<Series>& all) {
  std::vector<double> values;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (!r->is_outside()) values.push_back(r->error);
      if (says_size(*r)) values.insert(values.end(), {r->error_lo, r->error_hi});
    }
  }
  return log_axis(log_extent(values), figure_of(all).axis());
}

std::string tip(const Series& series, const ReplayRow& r) {
  const char* tie = r.tied == true ? r.is_best() ? ", best" : ", not distinguishable from the best" : "";
  return fmt::format("{}, budget {}: {} {}{}, holds {} and reads {} of the full cache{}{}", series.name(), r.budget,
                     r.figure().quantity, mark_of(r), interval_text(r.error, r.error_lo, r.error_hi),
                     short_number(r.held()), short_number(r.read()), tie,
                     r.is_outside()  ? fmt::format("; cannot be predicted: {}", r.outside())
                     : r.estimable() ? ""
                                     : "; the mean is not estimable");
}

/// Where a row stands on the axis of errors: what cannot be predicted is at its end.
double position_of(const ReplayRow& r) { return r.is_outside() ? INFINITY : r.error; }

/// What captions say of values that do not say how large the damage is, where there are any.
std::string vague_words(const std::vector<Series>& all) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(all, [&](const Series& s) { return std::ranges::any_of(s.rows, is); });
  };
  std::string out;
  if (any([](const ReplayRow* r) { return is_large(*r); }))
    out += fmt::format(
        "Grey area: above {} nats a prediction does not say how large the damage is (large); hollow, "
        "without an interval. ",
        figure_of(all).largest);
  if (any([](const ReplayRow* r) { return r->is_outside(); }))
    out += "Outside, at the edge: cannot be predicted, measure it. ";
  const auto rounds = [](const Series& s) { return s.kind == "quantisation" || s.kind == "composition"; };
  if (figure_of(all).is_prediction() && std::ranges::any_of(all, rounds))
    out += "Contexts are read exactly here; an engine reads them through its cache, which adds to what rounding does. ";
  return out;
}

bool is_tied(const ReplayRow& r) { return r.tied == true && !r.is_best(); }

Drawing drawn(Drawing drawing, std::span<const Budget> budgets) {
  drawing.budgets = budget_words(budgets);
  return drawing;
}

Drawing dots_at(const std::vector<Series>& all, const Budget& budget) {
  const std::vector<Series> shown = at_budgets(all, {budget});
  const replay::RankingFigure& figure = figure_of(all);
  DotPlot plot{.title = fmt::format("{} at {}", figure.title(), budget_words(budget)),
               .description = figure.average_title() + " of every method, in ascending order",
               .x = error_axis(shown),
               .vague_from = figure.largest};
  for (const Series& series : shown) {
    const ReplayRow& r = *series.rows.front();
    plot.rows.push_back(
        {.name = series.name(),
         .group = series.reference              ? "reference"
                  : marks::is_own(series.style) ? series.name()
                                                : series.kind,
         .style = series.style,
         .grey = series.reference,
         .hollow = !says_size(r),
         .value = position_of(r),
         .lo = says_size(r) ? r.error_lo : NAN,
         .hi = says_size(r) ? r.error_hi : NAN,
         .text = r.is_outside() ? "outside" : mark_of(r) + three_digits(r.error) + (is_tied(r) ? " ~" : ""),
         .tip = tip(series, r)});
  }
  std::ranges::stable_sort(plot.rows, {}, [](const DotRow& row) { return row.value; });
  return drawn(draw(plot), {&budget, 1});
}

double cost_of(const ReplayRow& r, const PlottedCost& cost) { return (r.*cost.of)(); }
bool has_cost(const ReplayRow& r, const PlottedCost& cost) {
  return cost_of(r, cost) > least_cost && cost_of(r, cost) < most_cost;
}

/// With ticks at the budgets where they limit this cost.
Axis cost_axis(const std::vector<Series>& all, const PlottedCost& cost, const BudgetGroup& budgets) {
  double lo = INFINITY, hi = 0;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (!has_cost(*r, cost)) continue;
      lo = std::min(lo, 100 * cost_of(*r, cost));
      hi = std::max(hi, 100 * cost_of(*r, cost));
    }
  }
  if (lo > hi) lo = hi = 100;
  Axis axis = percent_axis(lo, hi, cost.x_title);
  std::vector<Tick> ticks;
  for (const Budget& budget : budgets) {
    if (budget.cost() == cost.kind)
      ticks.push_back({100 * budget.share(), fmt::format("{:.4g}%", 100 * budget.share())});
  }
  if (!ticks.empty()) axis.ticks = std::move(ticks);
  return axis;
}

/// The row of the lowest error of each family at each budget.
std::set<const ReplayRow*> best_of_families(const std::vector<Series>& all) {
  std::map<std::pair<std::string, Budget>, const ReplayRow*> best;
  for (const Series& series : all) {
    if (series.reference) continue;
    for (const ReplayRow* r : series.rows) {
      if (!r->ok() || !r->estimable() || !std::isfinite(r->error)) continue;
      const ReplayRow*& known = best[{series.kind, r->budget}];
      if (known == nullptr || r->error < known->error) known = r;
    }
  }
  std::set<const ReplayRow*> rows;
  for (const auto& [family, row] : best) rows.insert(row);
  return rows;
}

ChartLine line_of(const Series& series, const PlottedCost& cost, const std::set<const ReplayRow*>& named) {
  ChartLine line{.name = series.method, .detail = series.params, .style = series.style};
  const bool shown = marks::is_own(series.style) ||
                     std::ranges::any_of(series.rows, [&](const ReplayRow* r) { return named.contains(r); });
  line.role = series.reference ? LineRole::reference : shown ? LineRole::shown : LineRole::beaten;
  for (const ReplayRow* r : series.rows) {
    if (!has_cost(*r, cost)) continue;
    const Interval interval = says_size(*r) ? Interval{r->error_lo, r->error_hi} : Interval{NAN, NAN};
    line.points.push_back(
        {100 * cost_of(*r, cost), position_of(*r), interval.lo, interval.hi, tip(series, *r), !says_size(*r)});
  }
  std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
  return line;
}

LineChart chart_of(const std::vector<Series>& all, const PlottedCost& cost, const BudgetGroup& budgets, double width) {
  const replay::RankingFigure& ranking = figure_of(all);
  LineChart chart{.title = fmt::format("{} {}", ranking.title(), cost.title),
                  .description = ranking.average_title() + " of every method against its cost",
                  .x = cost_axis(all, cost, budgets),
                  .y = error_axis(all),
                  .vague_from = ranking.largest,
                  .apart = true,
                  .width = width,
                  .plot_height = 340};
  const std::vector<const ReplayRow*> frontier = frontier_of(all, cost.of);
  for (const ReplayRow* r : frontier) chart.frontier.push_back({100 * cost_of(*r, cost), r->error, NAN, NAN, ""});
  std::set<const ReplayRow*> named = best_of_families(all);
  named.insert(frontier.begin(), frontier.end());
  for (const Series& series : all) {
    chart.lines.push_back(line_of(series, cost, named));
    if (all.size() > most_named && chart.lines.back().role == LineRole::beaten)
      chart.lines.back().role = LineRole::crowd;
  }
  return chart;
}

}  // namespace

Figure error_figure(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& of_part) {
  const replay::RankingFigure& ranking = figure_of(all);
  Figure figure{
      .title = fmt::format("{} by method{}", ranking.title(), of_part),
      .caption = fmt::format("{}, in ascending order; bars: its 95 % interval. Colours: families of methods; "
                             "grey crosses: references, which are not ranked. ~: not distinguishable from the "
                             "best. {}Triangles: beyond the axis.",
                             ranking.meaning, vague_words(all)),
      .alone = fmt::format("{}Bars: 95 % intervals. ~: not distinguishable from the best.", vague_words(all))};
  for (const BudgetGroup& group : budget_groups(budgets)) {
    const Budget budget = main_budgets(group).front();
    if (!at_budgets(all, {budget}).empty()) figure.drawings.push_back(dots_at(all, budget));
  }
  return figure;
}

Figure cost_figure(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& of_part) {
  const replay::RankingFigure& ranking = figure_of(all);
  Figure figure{
      .title = fmt::format("{} and cost{}", ranking.title(), of_part),
      .caption = fmt::format(
          "{}; bars: its 95 % interval; methods at the "
          "same cost are drawn side by side. Strong line: the rows that no other row beats by a lower {} at no more "
          "than {} times the bytes. Named and coloured by family: their methods, and the lowest of each "
          "family at a budget; grey rings: all other methods; grey crosses: references. {}Triangles at an edge: values "
          "outside the axis.",
          ranking.meaning, ranking.quantity, compare::equal_cost, vague_words(all)),
      .alone = fmt::format("{}Bars: 95 % intervals. Strong line: the lowest at this cost. Grey rings: other methods; "
                           "crosses: references.",
                           vague_words(all))};
  for (const BudgetGroup& group : budget_groups(budgets)) {
    if (group.size() < 2) continue;
    const std::optional<CostKind> limited = group.front().cost();
    const std::vector<Series> shown = at_budgets(all, group);
    for (const PlottedCost& cost : plotted_costs) {
      const bool other = (limited == CostKind::memory || limited == CostKind::read) && limited != cost.kind;
      const auto has_points = [&](const Series& series) {
        return std::ranges::any_of(series.rows, [&](const ReplayRow* r) { return has_cost(*r, cost); });
      };
      if (!other && std::ranges::any_of(shown, has_points))
        figure.drawings.push_back(
            drawn(draw(chart_of(shown, cost, group, figure.drawings.empty() ? page_width : 450)), group));
    }
  }
  return figure;
}

}  // namespace kvbench::report
