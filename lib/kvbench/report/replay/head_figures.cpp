// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/figures.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/drawing/axis.hpp>
#include <kvbench/report/drawing/charts.hpp>

namespace kvbench::report {
namespace {

constexpr std::size_t most_head_maps = 100;

/// The errors of one configuration, of all seeds.
struct HeadErrors {
  std::string name;
  std::vector<double> all;
  std::map<std::pair<std::int64_t, Index>, std::vector<double>> by_place;  ///< layer, query head
};

std::vector<HeadErrors> errors_by_head(const ReplayPart& part) {
  OrderedMap<std::string, HeadErrors> by_name;
  for (const ReplayRow& r : part.heads) {
    if (!r.ok() || r.method == "exact" || std::isnan(r.error)) continue;
    const std::string name = fmt::format("{}{}{} at {}", r.method, r.params.empty() ? "" : " ", r.params, r.budget);
    HeadErrors& errors = by_name[name];
    errors.name = name;
    errors.all.push_back(r.error);
    errors.by_place[{r.layer.value_or(0), r.query_head.value()}].push_back(r.error);
  }
  std::vector<HeadErrors> out;
  for (auto& [name, errors] : by_name.items()) out.push_back(std::move(errors));
  std::ranges::stable_sort(out, {}, [](const HeadErrors& errors) { return mean(errors.all); });
  return out;
}

HeatMap head_map(const HeadErrors& errors, Extent extent) {
  HeatMap map{.title = errors.name,
              .description = "Mean relative error by layer and query head",
              .column_title = "head",
              .lo = extent.lo,
              .hi = extent.hi};
  std::set<std::int64_t> layers, heads;
  for (const auto& [place, values] : errors.by_place) layers.insert(place.first), heads.insert(place.second);
  for (const std::int64_t head : heads) map.columns.push_back(fmt::format("{}", head));
  for (const std::int64_t layer : layers) {
    map.rows.push_back({.name = fmt::format("layer {}", layer)});
    for (const std::int64_t head : heads) {
      const auto at = errors.by_place.find({layer, head});
      map.rows.back().values.push_back(at == errors.by_place.end() ? NAN : mean(at->second));
      map.rows.back().words.push_back("no value");
    }
  }
  return map;
}

}  // namespace

std::vector<Block> head_figures(const ReplayPart& part) {
  std::vector<HeadErrors> maps = errors_by_head(part);
  if (maps.empty()) return {};
  const std::size_t rows = maps.size();
  maps.resize(std::min(rows, most_head_maps));
  std::vector<double> values;
  for (const HeadErrors& errors : maps) values.insert(values.end(), errors.all.begin(), errors.all.end());
  const Extent extent = log_extent(values);
  std::string text =
      "Error by layer and query head: open the map of a row. The maps are in ascending order of the mean error and "
      "have the same colours.";
  if (maps.size() < rows)
    text += fmt::format(" Of {} rows, the {} with the lowest errors have a map.", rows, maps.size());
  std::vector<Block> blocks = {Paragraph{.text = text, .of_drawings = true}};
  for (const HeadErrors& errors : maps) {
    blocks.emplace_back(Figure{
        .title = "Layers and heads of " + errors.name, .drawings = {draw(head_map(errors, extent))}, .folded = true});
  }
  return blocks;
}

}  // namespace kvbench::report
