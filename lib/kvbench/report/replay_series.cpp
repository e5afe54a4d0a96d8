// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay_series.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/budget.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench {
namespace {

std::string kind_of_method(const std::string& method) {
  if (method.starts_with("file:")) return "own";
  const auto known = std::ranges::find(all_methods(), method, &MethodInfo::name);
  return known == all_methods().end() ? "other" : std::string(name_of(known->kind));
}

double lowest_error(const Series& series) {
  double lowest = INFINITY;
  for (const ReplayRow* r : series.rows) lowest = r->error < lowest ? r->error : lowest;
  return lowest;
}

void set_styles(std::vector<Series>& all) {
  std::set<const ReplayRow*> best;
  for (const auto cost : {&ReplayRow::held, &ReplayRow::read}) {
    for (const ReplayRow* r : frontier_of(all, cost)) best.insert(r);
  }
  std::vector<Series*> order;
  for (Series& series : all) {
    if (!series.reference) order.push_back(&series);
  }
  std::ranges::stable_sort(order, {}, [&](const Series* s) {
    const bool first = std::ranges::any_of(s->rows, [&](const ReplayRow* r) { return best.contains(r) || r->tied == true; });
    return std::pair(!first, lowest_error(*s));
  });
  for (std::size_t i = 0; i < order.size(); ++i) order[i]->style = static_cast<int>(i);
}

/// 0 for a quarter, more the further the budget is from it; absolute budgets after shares.
double distance_from_quarter(const Budget& budget) {
  return budget.is_share() ? std::abs(std::log(budget.share() / 0.25)) : 1e9;
}

}  // namespace

std::vector<const ReplayRow*> frontier_of(const std::vector<Series>& all, double ReplayRow::*cost) {
  std::vector<const ReplayRow*> rows;
  for (const Series& series : all) {
    if (series.reference) continue;
    for (const ReplayRow* r : series.rows) {
      if (r->ok() && r->estimable() && std::isfinite(r->error) && std::isfinite(r->*cost)) rows.push_back(r);
    }
  }
  const auto beaten = [&](const ReplayRow* r) {
    return std::ranges::any_of(rows, [&](const ReplayRow* other) {
      return (other->error < r->error && other->*cost <= equal_cost * r->*cost) ||
             (other->error == r->error && other->*cost < r->*cost);
    });
  };
  std::vector<const ReplayRow*> out;
  std::ranges::copy_if(rows, std::back_inserter(out), [&](const ReplayRow* r) { return !beaten(r); });
  std::ranges::stable_sort(out, {}, cost);
  return out;
}

std::vector<std::string> main_budgets(const std::vector<std::string>& budgets) {
  std::vector<std::string> out;
  for (const std::string& text : budgets) {
    const Budget budget = Budget::parse(text);
    const auto same = [&](const std::string& other) { return Budget::parse(other).cost() == budget.cost(); };
    const auto known = std::ranges::find_if(out, same);
    if (known == out.end()) {
      out.push_back(text);
    } else if (distance_from_quarter(budget) < distance_from_quarter(Budget::parse(*known))) {
      *known = text;
    }
  }
  return out;
}

std::vector<Series> series_of(const ReplayPart& part) {
  std::vector<Series> all;
  const auto find = [&](const ReplayRow& r) -> Series& {
    const auto known = std::ranges::find_if(all, [&](const Series& s) { return s.method == r.method && s.params == r.params; });
    if (known != all.end()) return *known;
    all.push_back({.method = r.method,
                   .params = r.params,
                   .kind = kind_of_method(r.method),
                   .reference = is_baseline(r.method),
                   .style = 0,
                   .rows = {},
                   .layers = {}});
    return all.back();
  };
  for (const ReplayRow& r : part.overall) find(r).rows.push_back(&r);
  for (const ReplayRow& r : part.layers) find(r).layers.push_back(&r);
  for (Series& series : all) std::ranges::stable_sort(series.rows, {}, &ReplayRow::share);
  set_styles(all);
  return all;
}

std::vector<std::string> budgets_of(const ReplayPart& part) {
  std::vector<std::pair<double, std::string>> budgets;
  const auto add = [&](const ReplayRow& r) {
    const auto known = std::ranges::find(budgets, r.budget, &std::pair<double, std::string>::second);
    if (known == budgets.end())
      budgets.emplace_back(r.share, r.budget);
    else if (std::isnan(known->first))
      known->first = r.share;
  };
  std::ranges::for_each(part.overall, add);
  std::ranges::for_each(part.layers, add);
  std::ranges::stable_sort(budgets, [](const auto& a, const auto& b) {
    return std::isnan(a.first) ? false : std::isnan(b.first) || a.first < b.first;
  });
  std::vector<std::string> names;
  for (const auto& [share, name] : budgets) names.push_back(name);
  return names;
}

}  // namespace kvbench
