// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/dot_plot.hpp>

#include <algorithm>

#include <kvbench/report/labels.hpp>
#include <kvbench/report/svg.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

constexpr double dot_row_height = 22, dots_top = 30, dots_bottom = 44;

/// Where columns of the plot begin and end, px.
struct Columns {
  double details, left, right, end;
};

std::string dot_text(const DotPlot& plot, const Dot& dot, const Columns& at, double y) {
  const auto x_of = [&](double v) { return at.left + (at.right - at.left) * std::clamp(plot.x.at(v), 0., 1.); };
  const double x = x_of(dot.value), share = plot.x.at(dot.value);
  std::string mark;
  if (share < 0 || share > 1) {
    mark = svg::beyond(x, y, share < 0 ? -1 : 1, 0);
  } else {
    if (!std::isnan(dot.lo) && !std::isnan(dot.hi)) mark = svg::line(x_of(dot.lo), y, x_of(dot.hi), y, "whisker");
    mark += svg::marker(dot.reference ? 3 : dot.style, x, y);
  }
  std::string out = svg::group(dot.reference ? "grey" : svg::colour(dot.style), dot.tip, mark);
  out += svg::text(0, y + 4, dot.name, dot.reference ? "soft" : "");
  if (!dot.detail.empty()) out += svg::text(at.details, y + 4, dot.detail, "soft small");
  return out + svg::text(at.end, y + 4, interval_text(dot.value, dot.lo, dot.hi), "soft small", svg::Anchor::end);
}

Columns columns_of(const DotPlot& plot) {
  double names = 0, details = 0, numbers = 0;
  for (const Dot& dot : plot.dots) {
    names = std::max(names, text_width(dot.name, 12));
    details = std::max(details, text_width(dot.detail, 11));
    numbers = std::max(numbers, text_width(interval_text(dot.value, dot.lo, dot.hi), 11));
  }
  const double left = names + 16 + (details > 0 ? details + 8 : 0);
  const double right = std::max(plot.width - numbers - 12, left + 160);
  return {names + 8, left, right, right + numbers + 12};
}

}  // namespace

Drawing draw(const DotPlot& plot) {
  const Columns at = columns_of(plot);
  const double base = dots_top + dot_row_height * static_cast<double>(plot.dots.size());
  std::string out = svg::text(0, 15, plot.title, "head");
  for (const Tick& tick : plot.x.ticks) {
    const double x = at.left + (at.right - at.left) * plot.x.at(tick.value);
    out += svg::line(x, dots_top, x, base, "grid") + svg::text(x, base + 15, tick.label, "soft small", svg::Anchor::middle);
  }
  out += svg::line(at.left, base, at.right, base, "frame");
  double y = dots_top + dot_row_height / 2;
  for (const Dot& dot : plot.dots) {
    out += dot_text(plot, dot, at, y);
    y += dot_row_height;
  }
  out += svg::text((at.left + at.right) / 2, base + 34, plot.x.title, "soft small", svg::Anchor::middle);
  return {svg::element(at.end, base + dots_bottom, plot.title, plot.description, out), static_cast<int>(at.end)};
}

}  // namespace kvbench
