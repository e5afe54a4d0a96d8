// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/measure_section.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/drawing/line_chart.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

struct MeasureLine {
  const CsvTable* table;
  const CsvRow* row;
  double x, value;
  const std::string& text(const char* column) const { return table->text(*row, column); }
};

struct MeasureSeries {
  std::vector<MeasureLine> lines;
  DistinctTexts layers, arrays;
  double lo = INFINITY, hi = -INFINITY, x_lo = INFINITY, x_hi = -INFINITY;
};

/// Smallest, mean and largest over heads and prompts.
struct Spread {
  double sum = 0, lo = INFINITY, hi = -INFINITY;
  int count = 0;
};
using MeasureCurve = std::map<double, Spread>;  // by x

MeasureCurve curve_of(const MeasureSeries& m, const std::string& layer, const std::string& array) {
  MeasureCurve curve;
  for (const MeasureLine& l : m.lines) {
    if (l.text("layer") != layer || l.text("array") != array || std::isnan(l.value)) continue;
    Spread& s = curve[l.x];
    s.sum += l.value;
    s.lo = std::min(s.lo, l.value);
    s.hi = std::max(s.hi, l.value);
    ++s.count;
  }
  return curve;
}

std::string title_of(const std::string& measure) {
  if (measure == "clusterability") return "Covering radius by number of greedy centres";
  if (measure == "similarity-by-distance") return "Cosine of keys by distance in tokens";
  return measure;
}

std::string y_title(const std::string& measure) {
  return measure == "clusterability"           ? "covering radius / spread"
         : measure == "similarity-by-distance" ? "mean cosine"
                                               : "value";
}

std::string x_title(const std::string& measure) {
  return measure == "clusterability" ? "centres k" : measure == "similarity-by-distance" ? "distance, tokens" : "x";
}

int style_of(const MeasureSeries& m, const std::string& array) {
  return static_cast<int>(std::ranges::find(m.arrays.list(), array) - m.arrays.list().begin());
}

/// The lines of the single heads of a layer, without names.
std::vector<ChartLine> head_lines(const MeasureSeries& m, const std::string& layer) {
  std::map<std::vector<std::string>, ChartLine> heads;
  for (const MeasureLine& l : m.lines) {
    if (l.text("layer") != layer) continue;
    ChartLine& line = heads[{l.text("array"), l.text("prompt"), l.text("kv_head")}];
    line.role = LineRole::context;
    line.tinted = true;
    line.style = style_of(m, l.text("array"));
    line.points.push_back({.x = l.x, .y = l.value, .tip = ""});
  }
  std::vector<ChartLine> lines;
  for (auto& [key, line] : heads) lines.push_back(std::move(line));
  return lines;
}

Drawing layer_drawing(const MeasureSeries& m, const std::string& layer) {
  const std::string& measure = m.lines.front().text("measure");
  LineChart chart{.title = "layer " + layer,
                  .description = title_of(measure),
                  .x = {.lo = std::min(0., m.x_lo), .hi = m.x_hi, .ticks = {}, .title = x_title(measure)},
                  .y = {.lo = m.lo, .hi = m.hi, .ticks = linear_ticks(m.lo, m.hi), .title = y_title(measure)},
                  .lines = head_lines(m, layer),
                  .width = 380,
                  .plot_height = 190};
  chart.x.ticks = linear_ticks(chart.x.lo, chart.x.hi);
  for (std::size_t i = 0; i < m.arrays.list().size(); ++i) {
    ChartLine line{.name = m.arrays.list()[i], .detail = "", .style = static_cast<int>(i), .points = {}};
    for (const auto& [x, s] : curve_of(m, layer, m.arrays.list()[i]))
      line.points.push_back({.x = x, .y = s.sum / s.count, .tip = ""});
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  return draw(chart);
}

DocTable measure_numbers(const MeasureSeries& m) {
  DocTable table{
      .title = "Numbers of this figure",
      .columns =
          {{"layer"}, {"array"}, {"x", true}, {"mean", true}, {"smallest", true}, {"largest", true}, {"heads", true}},
      .rows = {},
      .folded = true};
  for (const std::string& layer : m.layers.list()) {
    for (const std::string& array : m.arrays.list()) {
      for (const auto& [x, s] : curve_of(m, layer, array))
        table.rows.push_back({layer, array, fmt::format("{}", x), fmt::format("{}", s.sum / s.count),
                              fmt::format("{}", s.lo), fmt::format("{}", s.hi), fmt::format("{}", s.count)});
    }
  }
  return table;
}

void add(MeasureSeries& m, const MeasureLine& line) {
  m.lines.push_back(line);
  m.layers.add(line.text("layer"));
  m.arrays.add(line.text("array"));
  if (!std::isfinite(line.value)) return;
  m.lo = std::min(m.lo, line.value);
  m.hi = std::max(m.hi, line.value);
  m.x_lo = std::min(m.x_lo, line.x);
  m.x_hi = std::max(m.x_hi, line.x);
}

/// Adds margins to the range of the drawing, and includes zero where it is near.
void round_range(MeasureSeries& m) {
  if (m.lo > m.hi) m.lo = 0, m.hi = 1, m.x_lo = 0, m.x_hi = 1;
  if (m.lo > 0 && m.lo < 0.5 * m.hi) m.lo = 0;
  const double margin = m.hi > m.lo ? 0.04 * (m.hi - m.lo) : 0.5;
  m.hi += margin;
  if (m.lo != 0) m.lo -= margin;
  if (m.x_hi <= std::min(0., m.x_lo)) m.x_hi = m.x_lo + 1;
}

}  // namespace

std::vector<Block> measure_blocks(std::span<const CsvTable* const> tables) {
  std::vector<std::pair<std::vector<std::string>, MeasureSeries>> measures;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      const MeasureLine line{table, &row, table->number(row, "x"), table->number(row, "value")};
      if (!std::isfinite(line.x)) throw Error("{}:{}: column 'x' is empty", table->file, row.line);
      const std::vector<std::string> key = {table->text(row, "run"), line.text("trace"), line.text("sha256"),
                                            line.text("measure"), table->file};
      auto known = std::ranges::find(measures, key, &std::pair<std::vector<std::string>, MeasureSeries>::first);
      if (known == measures.end()) known = measures.insert(known, {key, {}});
      add(known->second, line);
    }
  }
  std::vector<Block> blocks = {Heading{2, "Measures of keys and values"}};
  for (auto& [key, m] : measures) {
    round_range(m);
    Figure figure{.title = fmt::format("{} ({}{}{})", title_of(key[3]), key[0], key[0].empty() ? "" : ", ", key[1]),
                  .drawings = {},
                  .caption = "Strong: mean over kv heads and prompts; faint: single heads.",
                  .numbers = measure_numbers(m)};
    for (const std::string& layer : m.layers.list()) figure.drawings.push_back(layer_drawing(m, layer));
    blocks.emplace_back(std::move(figure));
  }
  return blocks;
}

}  // namespace kvbench::report
