// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/charts.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/report/drawing/axis.hpp>
#include <kvbench/report/drawing/labels.hpp>

namespace kvbench::report {
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
