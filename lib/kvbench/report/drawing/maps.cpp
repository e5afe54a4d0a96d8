// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/charts.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/report/drawing/labels.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr double heat_top = 44, heat_row_height = 20, heat_gap = 1.5, heat_foot = 42, swatch_width = 22;
constexpr int heat_colours = 9;
constexpr std::size_t numbered_columns = 16;

Shape swatch(double x, double y, double width, double height, char colour) {
  return shape::rect(x, y, width, height, fmt::format("h{}", colour));
}

/// A number short enough for a cell: "0.0664", "4e-8".
std::string cell_text(double value) {
  if (value == 0 || value >= 0.001) return three_digits(value);
  std::string text = fmt::format("{:.0e}", value);
  if (const std::size_t zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

Shape cell(const HeatMap& map, const HeatRow& row, std::size_t c, double x, double y, double width) {
  const double value = row.values[c];
  const char colour = heat_class(value, map.lo, map.hi);
  const std::string word = std::isnan(value) ? row.words[c] : three_digits(value);
  Shapes content = swatch(x, y, width - heat_gap, heat_row_height - heat_gap, colour);
  if (map.columns.size() <= numbered_columns) {
    const std::string mark = row.marks.empty() || row.marks[c].empty() ? "–" : row.marks[c];
    const std::string shown = std::isnan(value) ? mark : cell_text(value);
    content += shape::text(x + (width - heat_gap) / 2, y + heat_row_height / 2 + 3.5, shown,
                           fmt::format("small t{}", colour), Anchor::middle);
  }
  const std::string name = row.detail.empty() ? row.name : row.name + " " + row.detail;
  return shape::group("cell", fmt::format("{}, {} {}: {}", name, map.column_title, map.columns[c], word),
                      std::move(content));
}

/// The nine colours with the values at their boundaries.
Shapes legend(const HeatMap& map, double left, double y) {
  Shapes out;
  for (int i = 0; i < heat_colours; ++i)
    out += swatch(left + swatch_width * i, y, swatch_width, 10, static_cast<char>('0' + i));
  for (const int i : {0, 3, 6, 9}) {
    const double value = std::pow(map.lo, 1 - i / 9.) * std::pow(map.hi, i / 9.);
    out += shape::text(left + swatch_width * i, y + 23, short_number(value), "soft small", Anchor::middle);
  }
  return out;
}

}  // namespace

char heat_class(double value, double lo, double hi) {
  if (std::isnan(value)) return 'x';
  if (value <= lo) return '0';
  if (value >= hi) return '8';
  const double share = Axis{.scale = Scale::log, .lo = lo, .hi = hi}.at(value);
  return static_cast<char>('0' + std::min(heat_colours - 1, static_cast<int>(heat_colours * share)));
}

Drawing draw(const HeatMap& map) {
  double names = 0, details = 0;
  for (const HeatRow& row : map.rows) {
    names = std::max(names, text_width(row.name, 12));
    details = std::max(details, text_width(row.detail, 11));
  }
  const double left = names + 10 + (details > 0 ? details + 8 : 0);
  const double cell_width = map.columns.size() <= numbered_columns ? 46 : 20;
  const double base = heat_top + heat_row_height * static_cast<double>(map.rows.size());
  const double cells = cell_width * static_cast<double>(map.columns.size());
  const double width =
      std::ceil(std::max({left + cells, left + swatch_width * heat_colours + 14, text_width(map.title, 14)})) + 2;
  Shapes out = shape::text(0, 15, map.title, "head") +
               shape::text(left - 8, heat_top - 6, map.column_title, "soft small", Anchor::end);
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    const double x = left + cell_width * (static_cast<double>(c) + 0.5);
    out += shape::text(x, heat_top - 6, map.columns[c], "soft small", Anchor::middle);
  }
  double y = heat_top;
  for (const HeatRow& row : map.rows) {
    out += shape::text(0, y + heat_row_height / 2 + 3.5, row.name, "");
    if (!row.detail.empty()) out += shape::text(names + 8, y + heat_row_height / 2 + 3.5, row.detail, "soft small");
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      out += cell(map, row, c, left + cell_width * static_cast<double>(c), y, cell_width);
    y += heat_row_height;
  }
  out += legend(map, left, base + 12);
  return {std::move(out), width, base + heat_foot, true, map.title, map.description};
}

namespace {

constexpr double map_top = 34, query_height = 6, strip_height = 16, column_width = 5, map_gap = 8;
constexpr double least_mass = 1e-4, most_mass = 1;

/// One path per colour: cells of equal colour in a row are one rectangle, which keeps the file small.
class Cells {
 public:
  void add_row(const std::vector<char>& colours, double left, double y, double height) {
    for (std::size_t c = 0; c < colours.size();) {
      std::size_t end = c;
      while (end < colours.size() && colours[end] == colours[c]) ++end;
      boxes_[static_cast<std::size_t>(colours[c] - '0')].push_back(shape::box(
          left + column_width * static_cast<double>(c), y, column_width * static_cast<double>(end - c), height));
      c = end;
    }
  }
  Shapes shapes() const {
    Shapes out;
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      if (!boxes_[i].empty()) out += shape::rects(boxes_[i], fmt::format("h{}", i));
    }
    return out;
  }

 private:
  std::array<std::vector<Polyline>, 9> boxes_;
};

std::vector<char> mass_colours(const std::vector<double>& mass) {
  std::vector<char> out;
  for (const double value : mass) out.push_back(heat_class(value, least_mass, most_mass));
  return out;
}

std::vector<char> share_colours(const std::vector<double>& shares) {
  std::vector<char> out;
  for (const double share : shares) out.push_back(static_cast<char>('0' + std::lround(8 * std::clamp(share, 0., 1.))));
  return out;
}

}  // namespace

Drawing draw(const AttentionMap& map) {
  double left = text_width("queries", 12) + 12;
  for (const KeptStrip& strip : map.kept) left = std::max(left, text_width(strip.name, 12) + 12);
  const std::size_t columns = map.mass.empty() ? 0 : map.mass[0].size();
  const double width = left + column_width * static_cast<double>(columns);
  Shapes out = shape::text(0, 15, map.title, "head") + shape::text(0, map_top + 12, "queries", "soft");
  Cells cells;
  double y = map_top;
  for (const std::vector<double>& row : map.mass) {
    cells.add_row(mass_colours(row), left, y, query_height);
    y += query_height;
  }
  y += map_gap;
  for (const KeptStrip& strip : map.kept) {
    Cells kept;
    kept.add_row(share_colours(strip.shares), left, y, strip_height - 2);
    out += shape::group("strip", "", shape::text(0, y + 11, strip.name, "") + kept.shapes(), strip.name);
    y += strip_height;
  }
  out += cells.shapes();
  for (const Tick& tick : linear_ticks(0, map.tokens)) {
    const double x = left + (width - left) * tick.value / map.tokens;
    out += shape::line(x, y, x, y + 4, "frame") + shape::text(x, y + 16, tick.label, "soft small", Anchor::middle);
  }
  out += shape::text((left + width) / 2, y + 32, "token", "soft small", Anchor::middle);
  return {std::move(out), width + 20, y + 40, true, map.title, map.description};
}

}  // namespace kvbench::report
