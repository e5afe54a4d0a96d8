// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/marks.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace kvbench::report::marks {
namespace {

constexpr int style_colours = 7, style_shapes = 7, own_colours = 4, own_shapes = 5;
constexpr double dash_2[] = {7, 3}, dash_3[] = {2, 2.5}, dash_4[] = {9, 3, 2, 3}, dash_5[] = {14, 4};
constexpr std::array<std::span<const double>, 5> dash_patterns = {{{}, dash_2, dash_3, dash_4, dash_5}};

Shape square(double x, double y, double r, const char* classes) {
  return shape::polygon({{x - r, y - r}, {x + r, y - r}, {x + r, y + r}, {x - r, y + r}}, classes);
}

Shape diamond(double x, double y, double r, const char* classes) {
  return shape::polygon({{x, y - r}, {x + r, y}, {x, y + r}, {x - r, y}}, classes);
}

int own_number(int style) { return -1 - style; }

Shape star(double x, double y) {
  std::vector<Point> corners;
  for (int i = 0; i < 10; ++i) {
    const double radius = i % 2 == 0 ? 7.2 : 3.2, angle = i * std::numbers::pi / 5;
    corners.emplace_back(x + radius * std::sin(angle), y - radius * std::cos(angle));
  }
  return shape::polygon(std::move(corners), "full");
}

/// Larger than those of other styles.
Shapes own_marker(int number, double x, double y) {
  switch (number % own_shapes) {
    case 0:
      return diamond(x, y, 6.2, "full");
    case 1:
      return star(x, y);
    case 2:  // an hourglass
      return shape::polygon({{x - 5, y - 6}, {x + 5, y - 6}, {x - 5, y + 6}, {x + 5, y + 6}}, "full");
    case 3:  // a plus
      return shape::line(x - 6, y, x + 6, y, "line") + shape::line(x, y - 6, x, y + 6, "line");
    default:  // a target
      return shape::circle(x, y, 5.6, "open") + shape::circle(x, y, 2.2, "full");
  }
}

/// Styles of one colour, which are 7 apart, differ in marker and dashes.
int turn_of(int style) { return style + style / style_colours; }

}  // namespace

Shapes marker(int style, double x, double y) {
  if (is_own(style)) return own_marker(own_number(style), x, y);
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

int family_style(std::string_view family) {
  static constexpr std::string_view families[] = {"eviction",    "sampling",  "merging",
                                                  "composition", "retrieval", "quantisation"};
  return static_cast<int>(std::ranges::find(families, family) - std::begin(families));
}

Shape beyond(double x, double y, int dx, int dy) {
  constexpr double r = 4.5;
  return shape::polygon({{x + dx * r, y + dy * r},
                         {x - dx * r - dy * r, y - dy * r - dx * r},
                         {x - dx * r + dy * r, y - dy * r + dx * r}},
                        "full");
}

std::span<const double> dashes(int style) {
  if (is_own(style))
    return dash_patterns[static_cast<std::size_t>(own_number(style) / own_colours) % dash_patterns.size()];
  return dash_patterns[static_cast<std::size_t>(turn_of(style)) % dash_patterns.size()];
}

std::string colour(int style) {
  if (!is_own(style)) return fmt::format("k{}", style % style_colours);
  const int colour = own_number(style) % own_colours;
  return colour == 0 ? "own" : fmt::format("own o{}", colour);
}

}  // namespace kvbench::report::marks
