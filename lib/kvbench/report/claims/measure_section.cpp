// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using measures::Measure;
using measures::MeasureRow;

struct MeasureSeries {
  std::vector<MeasureRow> lines;
  std::vector<std::int64_t> layers;  ///< in order of appearance
  DistinctTexts arrays;
  double lo = INFINITY, hi = -INFINITY, x_lo = INFINITY, x_hi = -INFINITY;
};

/// Smallest, mean and largest over heads and prompts.
struct Spread {
  double sum = 0, lo = INFINITY, hi = -INFINITY;
  int count = 0;
};
using MeasureCurve = std::map<Index, Spread>;  // by x

MeasureCurve curve_of(const MeasureSeries& m, std::int64_t layer, const std::string& array) {
  MeasureCurve curve;
  for (const MeasureRow& l : m.lines) {
    if (l.layer != layer || l.array != array || std::isnan(l.value)) continue;
    Spread& s = curve[l.x];
    s.sum += l.value;
    s.lo = std::min(s.lo, l.value);
    s.hi = std::max(s.hi, l.value);
    ++s.count;
  }
  return curve;
}

struct MeasureTitles {
  const char *figure, *x, *y;
};
MeasureTitles titles_of(Measure measure) {
  return measure == Measure::clusterability
             ? MeasureTitles{"Covering radius by number of greedy centres", "centres k", "covering radius / spread"}
             : MeasureTitles{"Cosine of keys by distance in tokens", "distance, tokens", "mean cosine"};
}

int style_of(const MeasureSeries& m, const std::string& array) {
  return static_cast<int>(std::ranges::find(m.arrays.list(), array) - m.arrays.list().begin());
}

/// The lines of the single heads of a layer, without names.
std::vector<ChartLine> head_lines(const MeasureSeries& m, std::int64_t layer) {
  std::map<std::vector<std::string>, ChartLine> heads;
  for (const MeasureRow& l : m.lines) {
    if (l.layer != layer) continue;
    ChartLine& line = heads[{l.array, l.prompt, std::to_string(l.kv_head)}];
    line.role = LineRole::context;
    line.tinted = true;
    line.style = style_of(m, l.array);
    line.points.push_back({.x = static_cast<double>(l.x), .y = l.value});
  }
  std::vector<ChartLine> lines;
  for (auto& [key, line] : heads) lines.push_back(std::move(line));
  return lines;
}

Drawing layer_drawing(const MeasureSeries& m, std::int64_t layer) {
  const MeasureTitles titles = titles_of(m.lines.front().measure);
  LineChart chart{.title = fmt::format("layer {}", layer),
                  .description = titles.figure,
                  .x = linear_axis(std::min(0., m.x_lo), m.x_hi, titles.x),
                  .y = linear_axis(m.lo, m.hi, titles.y),
                  .lines = head_lines(m, layer),
                  .width = 380,
                  .plot_height = 190};
  for (std::size_t i = 0; i < m.arrays.list().size(); ++i) {
    ChartLine line{.name = m.arrays.list()[i], .style = static_cast<int>(i)};
    for (const auto& [x, s] : curve_of(m, layer, m.arrays.list()[i]))
      line.points.push_back({.x = static_cast<double>(x), .y = s.sum / s.count});
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  return draw(chart);
}

DocTable measure_numbers(const MeasureSeries& m) {
  DocTable table{
      .title = "Numbers of this figure",
      .columns =
          {{"layer"}, {"array"}, {"x", true}, {"mean", true}, {"smallest", true}, {"largest", true}, {"heads", true}},
      .folded = true};
  for (const std::int64_t layer : m.layers) {
    for (const std::string& array : m.arrays.list()) {
      for (const auto& [x, s] : curve_of(m, layer, array))
        table.rows.push_back({fmt::format("{}", layer), array, fmt::format("{}", x), fmt::format("{}", s.sum / s.count),
                              fmt::format("{}", s.lo), fmt::format("{}", s.hi), fmt::format("{}", s.count)});
    }
  }
  return table;
}

void add(MeasureSeries& m, const MeasureRow& line) {
  m.lines.push_back(line);
  if (std::ranges::find(m.layers, line.layer) == m.layers.end()) m.layers.push_back(line.layer);
  m.arrays.add(line.array);
  if (!std::isfinite(line.value)) return;
  m.lo = std::min(m.lo, line.value);
  m.hi = std::max(m.hi, line.value);
  m.x_lo = std::min(m.x_lo, static_cast<double>(line.x));
  m.x_hi = std::max(m.x_hi, static_cast<double>(line.x));
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

std::vector<Section> measure_sections(std::span<const CsvTable* const> tables) {
  if (tables.empty()) return {};
  // By run, trace, digest, measure and file.
  OrderedMap<std::tuple<std::string, std::string, std::string, Measure, std::string>, MeasureSeries> measures;
  for (const CsvTable* table : tables) {
    const RowReader<MeasureRow> read(*table, measure_columns());
    for (const CsvRow& line : table->rows) {
      if (table->text(line, "x").empty()) throw Error("{}:{}: column 'x' is empty", table->file, line.line);
      const MeasureRow row = read(line);
      add(measures[{row.run, row.trace, row.sha256, row.measure, table->file}], row);
    }
  }
  Section out{.title = "Measures of keys and values"};
  for (auto& [key, m] : measures.items()) {
    round_range(m);
    const MeasureRow& first = m.lines.front();
    Figure figure{.title = fmt::format("{} ({}{}{})", titles_of(first.measure).figure, first.run,
                                       first.run.empty() ? "" : ", ", first.trace),
                  .caption = "Strong: mean over kv heads and prompts; faint: single heads.",
                  .numbers = measure_numbers(m)};
    for (const std::int64_t layer : m.layers) figure.drawings.push_back(layer_drawing(m, layer));
    out.blocks.emplace_back(std::move(figure));
  }
  return {out};
}

}  // namespace kvbench::report
