// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/section.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// The rows per layer of one configuration, over all documents with injection in all layers.
using LayerRows = std::map<std::int64_t, const EvalRow*>;

std::map<std::string, LayerRows> layer_rows(const EvalSection& section, const std::string& task, const Budget& budget) {
  std::map<std::string, LayerRows> out;
  for (const EvalRow& row : section.rows) {
    const bool wanted =
        row.task == task && row.budget == budget && row.over_documents() && row.injection.mode == eval::Inject::all;
    if (wanted && row.layer && row.method != "exact") out[row.name()].emplace(*row.layer, &row);
  }
  return out;
}

struct LayerGrowth {
  std::vector<std::int64_t> layers;
  std::vector<double> drift, residual, factor;
};

LayerGrowth growth_of(const LayerRows& rows) {
  LayerGrowth out;
  for (const auto& [layer, row] : rows) {
    out.layers.push_back(layer);
    out.drift.push_back(row->drift);
    out.residual.push_back(row->residual);
  }
  out.factor = eval::amplification(out.drift, out.residual);
  return out;
}

Figure growth_figure(const EvalSection& section, const Budget& budget) {
  Figure figure{
      .title = "Growth of errors with depth at a budget of " + budget.text(),
      .caption =
          "Drift of the hidden state after a layer, divided by the root of the sum of squares of the errors that this "
          "and all earlier layers added to the residual stream. 1 (dashed): the model passes independent errors on "
          "unchanged.",
      .numbers = {
          .title = "Numbers of this figure",
          .columns = {{"task"}, {"method"}, {"layer", true}, {"drift", true}, {"residual_err", true}, {"growth", true}},
          .folded = true}};
  for (const std::string& task : section.tasks) {
    LineChart chart{.title = task, .description = "Growth of errors with depth, task " + task};
    std::vector<double> values;
    std::int64_t last = 1;
    for (const auto& [name, rows] : layer_rows(section, task, budget)) {
      const LayerGrowth growth = growth_of(rows);
      const EvalRow& first = *rows.begin()->second;
      ChartLine line{.name = first.method, .detail = first.params, .style = section.style_of(first)};
      for (std::size_t l = 0; l < growth.layers.size(); ++l) {
        figure.numbers.rows.push_back({task, name, fmt::format("{}", growth.layers[l]), short_number(growth.drift[l]),
                                       short_number(growth.residual[l]), short_number(growth.factor[l])});
        if (std::isnan(growth.factor[l])) continue;
        line.points.push_back({.x = static_cast<double>(growth.layers[l]), .y = growth.factor[l], .tip = name});
        values.push_back(growth.factor[l]);
        last = std::max(last, growth.layers[l]);
      }
      if (!line.points.empty()) chart.lines.push_back(std::move(line));
    }
    if (chart.lines.empty()) continue;
    Extent extent = log_extent(values);
    extent = {std::min(extent.lo, 0.9), std::max(extent.hi, 1.1)};
    chart.levels = {1};
    const auto end = static_cast<double>(last);
    chart.x = linear_axis(0, end, "layer");
    chart.y = log_axis(extent, "drift / errors added");
    figure.drawings.push_back(draw(chart));
  }
  return figure;
}

/// KL by document of the rows of one configuration.
using ByDocument = std::map<std::string, double>;

struct SingleLayers {
  const EvalRow* first = nullptr;           ///< over all documents, where there is one
  std::map<std::int64_t, double> by_layer;  ///< KL over all documents with injection in this layer alone
  ByDocument sum;                           ///< of these, by document
};

std::map<std::string, SingleLayers> single_layers(const EvalSection& section, const std::string& task,
                                                  const Budget& budget) {
  std::map<std::string, SingleLayers> out;
  for (const char* document : {"all", ""}) {
    for (const EvalRow* row : section.find(task, document, "one")) {
      if (row->budget != budget || row->method == "exact" || row->injection.layer < 0) continue;
      SingleLayers& one = out[row->name()];
      if (one.first == nullptr) one.first = row;
      if (row->over_documents()) one.by_layer[row->injection.layer] = kl_of(*row).mean;
      one.sum[row->document] += kl_of(*row).mean;
    }
  }
  return out;
}

/// Adds one row per configuration whose layers were injected one by one.
void add_additivity(const EvalSection& section, const std::string& task, const Budget& budget, DocTable& table) {
  for (const auto& [name, single] : single_layers(section, task, budget)) {
    std::vector<double> sums, together;
    double all = NAN;
    for (const char* document : {"all", ""}) {
      for (const EvalRow* row : section.find(task, document, "all")) {
        if (row->name() != name || row->budget != budget) continue;
        // Runs with other numbers of documents have other documents.
        if (row->over_documents() && row->documents == single.first->documents) all = kl_of(*row).mean;
        const auto sum = single.sum.find(row->document);
        if (!row->over_documents() && sum != single.sum.end())
          sums.push_back(sum->second), together.push_back(kl_of(*row).mean);
      }
    }
    const auto sum = single.sum.find("all");
    if (sum == single.sum.end() || std::isnan(all)) continue;
    const eval::Additivity interval = eval::additivity(sums, together);
    table.rows.push_back({task, name, budget.text(), fmt::format("{}", single.by_layer.size()),
                          short_number(sum->second), short_number(all),
                          interval_text(sum->second / all, interval.interval.lo, interval.interval.hi)});
  }
}

Figure sensitivity_figure(const EvalSection& section, const Budget& budget) {
  Figure figure{.title = "Sensitivity of layers at a budget of " + budget.text(),
                .caption =
                    "KL where the outputs of a method replace those of one layer only, mean over documents. The colour "
                    "scale is logarithmic.",
                .numbers = {.title = "Numbers of this figure",
                            .columns = {{"task"}, {"method"}, {"layer", true}, {"KL", true}},
                            .folded = true}};
  for (const std::string& task : section.tasks) {
    const std::map<std::string, SingleLayers> all = single_layers(section, task, budget);
    std::set<std::int64_t> layers;
    std::vector<double> values;
    for (const auto& [name, one] : all) {
      for (const auto& [layer, kl] : one.by_layer) layers.insert(layer), values.push_back(kl);
    }
    if (layers.empty()) continue;
    const Extent extent = log_extent(values);
    HeatMap map{.title = task, .description = "KL by method and layer, task " + task, .lo = extent.lo, .hi = extent.hi};
    for (const std::int64_t layer : layers) map.columns.push_back(fmt::format("{}", layer));
    for (const auto& [name, one] : all) {
      HeatRow row{one.first->method, one.first->params, {}, {}};
      for (const std::int64_t layer : layers) {
        const auto known = one.by_layer.find(layer);
        row.values.push_back(known == one.by_layer.end() ? NAN : known->second);
        row.words.push_back(known == one.by_layer.end() ? "not run" : "");
        if (known != one.by_layer.end())
          figure.numbers.rows.push_back({task, name, fmt::format("{}", layer), short_number(known->second)});
      }
      map.rows.push_back(std::move(row));
    }
    figure.drawings.push_back(draw(map));
  }
  return figure;
}

}  // namespace

std::vector<Block> depth_blocks(const EvalSection& section) {
  std::vector<Block> blocks;
  const Budget budget = quarter_of(section);
  append_filled(blocks, growth_figure(section, budget));
  DocTable sums{.title = "Sum of the KL of single layers, and KL of all layers together",
                .columns = {{"task"},
                            {"method"},
                            {"budget", true},
                            {"layers", true},
                            {"sum of single layers", true},
                            {"all together", true},
                            {"ratio", true}}};
  for (const std::string& task : section.tasks) {
    for (const Budget& each : section.budgets) add_additivity(section, task, each, sums);
  }
  if (!sums.rows.empty()) {
    blocks.emplace_back(
        Paragraph{"A ratio of 1: the damage of layers adds up, so layers can be judged one by one. Below 1: errors of "
                  "layers reinforce each other; above 1: they overlap. Intervals are over documents."});
    blocks.emplace_back(std::move(sums));
  }
  append_filled(blocks, sensitivity_figure(section, budget));
  return blocks;
}

}  // namespace kvbench::report
