// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay_series.hpp>

#include <algorithm>
#include <map>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench {
namespace {

constexpr std::size_t most_lines = 8;  // in one drawing

std::string kind_of_method(const std::string& method) {
  if (method.starts_with("file:")) return "own";
  const auto known = std::ranges::find(all_methods(), method, &MethodInfo::name);
  return known == all_methods().end() ? "other" : std::string(name_of(known->kind));
}

void set_styles(std::vector<Series>& all) {
  const bool apart = many(all);
  std::map<std::string, int> next;
  for (Series& series : all) {
    if (!series.reference) series.style = next[apart ? series.kind : ""]++;
  }
}

}  // namespace

bool many(const std::vector<Series>& all) {
  return static_cast<std::size_t>(std::ranges::count(all, false, &Series::reference)) > most_lines;
}

std::vector<Series> series_of(const ReplaySection& section) {
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
  for (const ReplayRow& r : section.overall) find(r).rows.push_back(&r);
  for (const ReplayRow& r : section.layers) find(r).layers.push_back(&r);
  for (Series& series : all) std::ranges::stable_sort(series.rows, {}, &ReplayRow::share);
  set_styles(all);
  return all;
}

std::vector<std::string> budgets_of(const ReplaySection& section) {
  std::vector<std::pair<double, std::string>> budgets;
  const auto add = [&](const ReplayRow& r) {
    const auto known = std::ranges::find(budgets, r.budget, &std::pair<double, std::string>::second);
    if (known == budgets.end())
      budgets.emplace_back(r.share, r.budget);
    else if (std::isnan(known->first))
      known->first = r.share;
  };
  std::ranges::for_each(section.overall, add);
  std::ranges::for_each(section.layers, add);
  std::ranges::stable_sort(budgets, [](const auto& a, const auto& b) {
    return std::isnan(a.first) ? false : std::isnan(b.first) || a.first < b.first;
  });
  std::vector<std::string> names;
  for (const auto& [share, name] : budgets) names.push_back(name);
  return names;
}

}  // namespace kvbench
