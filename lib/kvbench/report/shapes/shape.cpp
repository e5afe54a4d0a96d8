// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/shapes/shape.hpp>

#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace kvbench::report {

Shapes::Shapes(Shape shape) { list.push_back(std::move(shape)); }

Shapes& Shapes::operator+=(Shapes more) {
  std::ranges::move(more.list, std::back_inserter(list));
  return *this;
}

Shapes operator+(Shapes a, Shapes b) { return std::move(a += std::move(b)); }

namespace shape {
namespace {

std::vector<Polyline> rounded_lines(std::vector<Polyline> lines) {
  for (Polyline& line : lines) {
    for (auto& [x, y] : line.points) x = rounded(x), y = rounded(y);
  }
  return lines;
}

}  // namespace

double rounded(double value) {
  const double out = std::round(value * 100) / 100;
  return out == 0 ? 0 : out;
}

std::string px(double value) { return fmt::format("{}", rounded(value)); }

Shape line(double x1, double y1, double x2, double y2, std::string classes) {
  return {std::move(classes), Outline{OutlineKind::line, rounded_lines({{{{x1, y1}, {x2, y2}}, false}})}};
}

Shape polygon(std::vector<Point> corners, std::string classes) {
  return {std::move(classes), Outline{OutlineKind::polygon, rounded_lines({{std::move(corners), true}})}};
}

Polyline box(double x, double y, double width, double height) {
  const double left = rounded(x), top = rounded(y), right = left + rounded(width), bottom = top + rounded(height);
  return {{{left, top}, {right, top}, {right, bottom}, {left, bottom}}, true};
}

Shape rect(double x, double y, double width, double height, std::string classes) {
  return {std::move(classes), Outline{OutlineKind::rect, {box(x, y, width, height)}}};
}

Shape rects(std::vector<Polyline> boxes, std::string classes) {
  return {std::move(classes), Outline{OutlineKind::rects, std::move(boxes)}};
}

Shape path(std::vector<Polyline> lines, std::string classes, std::span<const double> dashes) {
  return {std::move(classes), Outline{OutlineKind::path, rounded_lines(std::move(lines)), dashes}};
}

Shape circle(double x, double y, double radius, std::string classes) {
  return {std::move(classes), Circle{{rounded(x), rounded(y)}, rounded(radius)}};
}

Shape text(double x, double y, std::string content, std::string classes, Anchor anchor) {
  return {std::move(classes), Text{{rounded(x), rounded(y)}, std::move(content), anchor}};
}

Shape group(std::string classes, std::string tip, Shapes shapes, std::string method) {
  return {std::move(classes), Group{std::move(tip), std::move(method), std::move(shapes)}};
}

}  // namespace shape
}  // namespace kvbench::report
