// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/figures.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr std::size_t most_maps = 3;              // shown side by side if each is narrow
constexpr std::size_t layers_of_narrow_map = 10;  // at most

std::vector<std::int64_t> layers_of(const std::vector<Series>& all) {
  std::set<std::int64_t> layers;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.layers) layers.insert(r->layer.value());
  }
  return {layers.begin(), layers.end()};
}

/// The row at this budget, and at this layer where one is given.
const ReplayRow* find_row(const std::vector<const ReplayRow*>& rows, const Budget& budget,
                          std::optional<std::int64_t> layer) {
  const auto at = std::ranges::find_if(
      rows, [&](const ReplayRow* r) { return r->budget == budget && (!layer || r->layer == layer); });
  return at == rows.end() ? nullptr : *at;
}

/// Those with a value at `budget`, in ascending order of the error there.
std::vector<const Series*> ranked(const std::vector<Series>& all, const Budget& budget) {
  const auto error = [&](const Series* s) {
    const ReplayRow* r = find_row(s->rows, budget, {});
    return r == nullptr || std::isnan(r->error) ? INFINITY : r->error;
  };
  std::vector<const Series*> order;
  for (const Series& series : all) {
    const auto has_value = [&](const ReplayRow* r) { return r->budget == budget && r->ok() && !std::isnan(r->error); };
    if (std::ranges::any_of(series.layers, has_value)) order.push_back(&series);
  }
  std::ranges::stable_sort(order, {}, error);
  return order;
}

HeatMap map_of(const std::vector<const Series*>& order, const Budget& budget, const std::vector<std::int64_t>& layers,
               const replay::RankingFigure& figure, Extent extent) {
  HeatMap map{.title = fmt::format("budget {}", budget),
              .description = figure.average_title() + " by method and layer",
              .lo = extent.lo,
              .hi = extent.hi};
  for (const std::int64_t layer : layers) map.columns.push_back(std::to_string(layer));
  for (const Series* series : order) {
    HeatRow row{.name = series->method, .detail = series->params};
    for (const std::int64_t layer : layers) {
      const ReplayRow* r = find_row(series->layers, budget, layer);
      const bool ok = r != nullptr && r->ok(), vague = ok && !says_size(*r);
      row.values.push_back(!ok || vague ? NAN : r->error);
      row.words.push_back(r == nullptr ? "not run"
                          : !ok        ? fmt::format("{}: {}", name_of(r->status), r->reason)
                          : vague      ? figure_text(r->figure(), *r)
                                       : "");
      row.marks.push_back(!vague ? "" : r->is_outside() ? "outside" : "large");
    }
    map.rows.push_back(std::move(row));
  }
  return map;
}

DocTable layer_numbers(const std::vector<Series>& all, std::span<const Budget> budgets,
                       const std::vector<std::int64_t>& layers) {
  DocTable table{.title = fmt::format("Numbers of this figure ({})", figure_of(all).column()),
                 .columns = {{"method"}, {"params"}, {"budget", true}},
                 .folded = true};
  for (const std::int64_t layer : layers) table.columns.push_back({fmt::format("layer {}", layer), true});
  for (const Budget& budget : budgets) {
    for (const Series* series : ranked(all, budget)) {
      std::vector<TableCell> cells = {series->method, series->params, budget.text()};
      for (const std::int64_t layer : layers) {
        const ReplayRow* r = find_row(series->layers, budget, layer);
        cells.emplace_back(r == nullptr ? ""
                           : r->ok()    ? mark_of(*r) + number_text(r->error)
                                        : std::string(name_of(r->status)));
      }
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

Extent colours_of(const std::vector<Series>& all) {
  std::vector<double> values;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.layers) {
      if (series.method != "exact" && !r->dense) values.push_back(r->error);
    }
  }
  return log_extent(values);
}

}  // namespace

std::vector<Block> layer_figures(const std::vector<Series>& all, const std::vector<Budget>& budgets) {
  const std::vector<std::int64_t> layers = layers_of(all);
  if (layers.empty() || budgets.empty()) return {};
  const Extent extent = colours_of(all);
  const replay::RankingFigure& ranking = figure_of(all);
  const std::string title = fmt::format("{} by layer", ranking.title());
  const auto figure = [&](std::span<const Budget> shown, const std::string& name, bool folded) {
    Figure f{.title = name,
             .caption = fmt::format(
                 "{} of the methods with results, in ascending order of the {} over all "
                 "layers at the budget of the map. The colour scale is logarithmic; values outside it have "
                 "the colour of its end. A dash: no result in this layer; large, outside: a prediction that "
                 "does not say how large the damage is, or none.",
                 ranking.average_title(), ranking.quantity),
             .numbers = layer_numbers(all, shown, layers),
             .folded = folded};
    for (const Budget& budget : shown) {
      f.drawings.push_back(draw(map_of(ranked(all, budget), budget, layers, ranking, extent)));
      f.drawings.back().budgets = budget_words(budget);
    }
    return f;
  };
  std::vector<Budget> filled;
  std::ranges::copy_if(budgets, std::back_inserter(filled),
                       [&](const Budget& budget) { return !ranked(all, budget).empty(); });
  if (filled.empty()) return {};
  const bool narrow = layers.size() <= layers_of_narrow_map;
  if (narrow && filled.size() <= most_maps) return {figure(filled, title, false)};
  std::vector<Budget> open = main_budgets(filled);
  open.resize(std::min(open.size(), narrow ? most_maps : 1));
  std::vector<Block> blocks = {figure(open, title, false)};
  for (const Budget& budget : filled) {
    if (std::ranges::find(open, budget) == open.end())
      blocks.emplace_back(figure({&budget, 1}, title + ": budget " + budget.text(), true));
  }
  return blocks;
}

namespace {

constexpr std::size_t most_head_maps = 100;

/// The errors of one configuration, of all seeds.
struct HeadErrors {
  std::string name;
  Budget budget;
  std::vector<double> all;
  std::map<std::pair<std::int64_t, Index>, std::vector<double>> by_place;  ///< layer, query head
};

std::vector<HeadErrors> errors_by_head(const ReplayPart& part) {
  OrderedMap<std::string, HeadErrors> by_name;
  for (const ReplayRow& r : part.heads) {
    if (!r.ok() || r.method == "exact" || std::isnan(r.error)) continue;
    const std::string name = fmt::format("{}{}{} at {}", r.method, r.params.empty() ? "" : " ", r.params, r.budget);
    HeadErrors& errors = by_name[name];
    errors.name = name, errors.budget = r.budget;
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
    Figure figure{
        .title = "Layers and heads of " + errors.name, .drawings = {draw(head_map(errors, extent))}, .folded = true};
    figure.drawings.back().budgets = budget_words(errors.budget);
    blocks.emplace_back(std::move(figure));
  }
  return blocks;
}

}  // namespace kvbench::report
