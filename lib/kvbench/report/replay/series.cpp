// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/series.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/drawing/marks.hpp>

namespace kvbench::report {
namespace {

constexpr int most_shown_series = 100;
constexpr std::size_t most_shown_budgets = 12;

constexpr int style_step = 7;  // between styles of one colour

double lowest_error(const Series& series) {
  double lowest = INFINITY;
  for (const ReplayRow* r : series.rows) lowest = !r->is_outside() && r->error < lowest ? r->error : lowest;
  return lowest;
}

/// Styles and ranks.
void set_styles(std::vector<Series>& all, const OwnStyles& own) {
  std::set<const ReplayRow*> best;
  for (const auto cost : {&replay::Costs::held, &replay::Costs::read}) {
    for (const ReplayRow* r : frontier_of(all, cost)) best.insert(r);
  }
  std::vector<Series*> order;
  for (Series& series : all) {
    if (!series.reference) order.push_back(&series);
  }
  std::ranges::stable_sort(order, {}, [&](const Series* s) {
    const bool first =
        std::ranges::any_of(s->rows, [&](const ReplayRow* r) { return best.contains(r) || r->tied == true; });
    return std::pair(!first, lowest_error(*s));
  });
  std::map<int, int> members;  // of each colour
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int colour = marks::family_style(order[i]->kind);
    order[i]->rank = static_cast<int>(i);
    const auto known = own.find(order[i]->name());
    order[i]->style = known != own.end() ? known->second : colour + style_step * members[colour]++;
  }
}

}  // namespace

std::vector<const ReplayRow*> frontier_of(const std::vector<Series>& all, double (replay::Costs::*cost)() const) {
  std::vector<const ReplayRow*> rows;
  for (const Series& series : all) {
    if (series.reference) continue;
    for (const ReplayRow* r : series.rows) {
      if (r->ok() && r->estimable() && std::isfinite(r->error) && std::isfinite((r->*cost)())) rows.push_back(r);
    }
  }
  std::ranges::stable_sort(rows, {}, cost);
  std::vector<double> lowest;         // error of the rows up to this one
  std::map<double, double> cheapest;  // cost by error
  for (const ReplayRow* r : rows) {
    lowest.push_back(lowest.empty() ? r->error : std::min(lowest.back(), r->error));
    cheapest.emplace(r->error, (r->*cost)());
  }
  const std::vector<const ReplayRow*> by_cost = rows;
  const auto beaten = [&](const ReplayRow* r) {
    const auto count =
        std::ranges::upper_bound(by_cost, compare::equal_cost * (r->*cost)(), {}, cost) - by_cost.begin();
    return (count > 0 && lowest[static_cast<std::size_t>(count) - 1] < r->error) ||
           cheapest.at(r->error) < (r->*cost)();
  };
  std::erase_if(rows, beaten);
  return rows;
}

const replay::RankingFigure& figure_of(const std::vector<Series>& all) {
  for (const Series& series : all) {
    for (const auto* rows : {&series.rows, &series.layers}) {
      if (!rows->empty()) return rows->front()->figure();
    }
  }
  return replay::figure_of({});
}

std::vector<Series> series_of(const ReplayPart& part) {
  OrderedMap<std::pair<std::string, std::string>, Series> by_name;
  const auto find = [&](const ReplayRow& r) -> Series& {
    Series& series = by_name[{r.method, r.params}];
    if (!series.method.empty()) return series;
    series = {.method = r.method,
              .params = r.params,
              .kind = std::string(methods::family_of(r.method)),
              .reference = compare::is_baseline(r.method),
              .style = 0,
              .rank = 0};
    return series;
  };
  for (const ReplayRow& r : part.overall) find(r).rows.push_back(&r);
  for (const ReplayRow& r : part.layers) find(r).layers.push_back(&r);
  std::vector<Series> all;
  for (auto& [name, series] : by_name.items()) all.push_back(std::move(series));
  for (Series& series : all) {
    std::ranges::stable_sort(series.rows, {}, &ReplayRow::share);
    if (std::ranges::any_of(series.rows, &ReplayRow::calibrated_on_itself)) series.reference = true;
  }
  set_styles(all, part.own);
  return all;
}

Shown shown_of(const std::vector<Series>& all, const std::vector<Budget>& budgets) {
  Shown out;
  const std::size_t count = std::min(budgets.size(), most_shown_budgets);
  for (std::size_t i = 0; i < count; ++i) out.budgets.push_back(budgets[i * budgets.size() / count]);
  const std::set<Budget> at(out.budgets.begin(), out.budgets.end());
  const auto hidden = [&](const ReplayRow* r) { return !at.contains(r->budget); };
  for (const Series& series : all) {
    if (!series.reference && series.rank >= most_shown_series) continue;
    out.series.push_back(series);
    std::erase_if(out.series.back().rows, hidden);
    std::erase_if(out.series.back().layers, hidden);
  }
  if (out.series.size() < all.size()) {
    out.note = fmt::format("Figures show {} of {} methods and parameters, those with the lowest errors.",
                           out.series.size(), all.size());
  }
  if (count < budgets.size())
    out.note +=
        fmt::format("{}Figures and answers show {} of {} budgets.", out.note.empty() ? "" : " ", count, budgets.size());
  if (!out.note.empty()) out.note += " The tables have all rows.";
  return out;
}

std::vector<Budget> budgets_of(const ReplayPart& part) {
  OrderedMap<Budget, double> shares;
  const auto add = [&](const ReplayRow& r) {
    double& share = shares[r.budget];
    if (share == 0 || std::isnan(share)) share = r.share;
  };
  std::ranges::for_each(part.overall, add);
  std::ranges::for_each(part.layers, add);
  std::vector<std::pair<double, Budget>> budgets;
  for (const auto& [budget, share] : shares.items()) budgets.emplace_back(share, budget);
  std::ranges::stable_sort(budgets, [](const auto& a, const auto& b) {
    return std::isnan(a.first) ? false : std::isnan(b.first) || a.first < b.first;
  });
  std::vector<Budget> out;
  for (const auto& [share, budget] : budgets) out.push_back(budget);
  return out;
}

}  // namespace kvbench::report
