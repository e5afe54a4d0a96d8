// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/marks.hpp>

#include <array>

#include <fmt/format.h>

namespace kvbench::report::marks {
namespace {

constexpr int style_colours = 7, style_shapes = 7;
constexpr double dash_2[] = {7, 3}, dash_3[] = {2, 2.5}, dash_4[] = {9, 3, 2, 3}, dash_5[] = {14, 4};
constexpr std::array<std::span<const double>, 5> dash_patterns = {{{}, dash_2, dash_3, dash_4, dash_5}};

Shape square(double x, double y, double r, const char* classes) {
  return shape::polygon({{x - r, y - r}, {x + r, y - r}, {x + r, y + r}, {x - r, y + r}}, classes);
}

Shape diamond(double x, double y, double r, const char* classes) {
  return shape::polygon({{x, y - r}, {x + r, y}, {x, y + r}, {x - r, y}}, classes);
}

/// Styles of one colour, which are 7 apart, differ in marker and dashes.
int turn_of(int style) { return style + style / style_colours; }

}  // namespace

Shapes marker(int style, double x, double y) {
  if (style == own_style) return diamond(x, y, 6.2, "full");
  switch (turn_of(style) % style_shapes) {
    case 0:
      return shape::circle(x, y, 3.6, "full");
    case 1:
      return square(x, y, 3.2, "full");
    case 2:
      return diamond(x, y, 4.6, "full");
    case 3:
      return shape::circle(x, y, 3.6, "open");
    case 4:
      return square(x, y, 3.2, "open");
    case 5:
      return diamond(x, y, 4.6, "open");
    default:
      return shape::line(x - 3.5, y - 3.5, x + 3.5, y + 3.5, "line") +
             shape::line(x - 3.5, y + 3.5, x + 3.5, y - 3.5, "line");
  }
}

Shape beyond(double x, double y, int dx, int dy) {
  constexpr double r = 4.5;
  return shape::polygon({{x + dx * r, y + dy * r},
                         {x - dx * r - dy * r, y - dy * r - dx * r},
                         {x - dx * r + dy * r, y - dy * r + dx * r}},
                        "full");
}

std::span<const double> dashes(int style) {
  if (style == own_style) return {};
  return dash_patterns[static_cast<std::size_t>(turn_of(style)) % dash_patterns.size()];
}

std::string colour(int style) { return style == own_style ? "own" : fmt::format("k{}", style % style_colours); }

}  // namespace kvbench::report::marks
