// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/dot_plot.hpp>

#include <algorithm>

#include <kvbench/report/labels.hpp>
#include <kvbench/report/svg.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

constexpr double row_height = 22, top = 30, bottom = 44, values = 150;  // values: width of the column of numbers

std::string dot_text(const DotPlot& plot, const Dot& dot, double left, double right, double y) {
  const auto x_of = [&](double v) { return left + (right - left) * std::clamp(plot.x.at(v), 0., 1.); };
  const double x = x_of(dot.value), at = plot.x.at(dot.value);
  std::string mark;
  if (at < 0 || at > 1) {
    mark = svg::beyond(x, y, at < 0 ? -1 : 1, 0);
  } else {
    if (!std::isnan(dot.lo) && !std::isnan(dot.hi)) mark = svg::line(x_of(dot.lo), y, x_of(dot.hi), y, "whisker");
    mark += svg::marker(dot.reference ? 3 : dot.style, x, y);
  }
  std::string out = svg::group(dot.reference ? "grey" : svg::colour(dot.style), dot.tip, mark);
  const double name_end = left - 12 - (dot.detail.empty() ? 0 : text_width(dot.detail, 11) + 8);
  out += svg::text(name_end, y + 4, dot.name, dot.reference ? "soft" : "", svg::Anchor::end);
  if (!dot.detail.empty()) out += svg::text(left - 12, y + 4, dot.detail, "soft small", svg::Anchor::end);
  return out + svg::text(plot.width, y + 4, interval_text(dot.value, dot.lo, dot.hi), "soft small", svg::Anchor::end);
}

}  // namespace

Drawing draw(const DotPlot& plot) {
  double widest = 0;
  for (const Dot& dot : plot.dots) {
    widest = std::max(widest, text_width(dot.name, 12) + (dot.detail.empty() ? 0 : text_width(dot.detail, 11) + 8));
  }
  const double left = widest + 16, right = std::max(plot.width - values, left + 200);
  const double base = top + row_height * static_cast<double>(plot.dots.size());
  DotPlot wide = plot;
  wide.width = right + values;
  std::string out = svg::text(0, 15, plot.title, "head");
  for (const Tick& tick : plot.x.ticks) {
    const double x = left + (right - left) * plot.x.at(tick.value);
    out += svg::line(x, top, x, base, "grid") + svg::text(x, base + 15, tick.label, "soft small", svg::Anchor::middle);
  }
  out += svg::line(left, base, right, base, "frame");
  double y = top + row_height / 2;
  for (const Dot& dot : plot.dots) {
    out += dot_text(wide, dot, left, right, y);
    y += row_height;
  }
  out += svg::text((left + right) / 2, base + 34, plot.x.title, "soft small", svg::Anchor::middle);
  return {svg::element(wide.width, base + bottom, plot.title, plot.description, out), static_cast<int>(wide.width)};
}

}  // namespace kvbench
