// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/svg.hpp>

#include <cmath>

#include <fmt/format.h>

#include <kvbench/report/text/text.hpp>

namespace kvbench::report::svg {
namespace {

constexpr int style_colours = 7, style_shapes = 7;
constexpr const char* dash_patterns[] = {"", "7 3", "2 2.5", "9 3 2 3", "14 4"};

std::string polygon(std::initializer_list<std::pair<double, double>> points, const char* classes) {
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + px(x) + "," + px(y);
  return fmt::format("<polygon points=\"{}\" class=\"{}\"/>\n", list, classes);
}

std::string circle(double x, double y, double r, const char* classes) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"/>\n", px(x), px(y), px(r), classes);
}

std::string square(double x, double y, double r, const char* classes) {
  return polygon({{x - r, y - r}, {x + r, y - r}, {x + r, y + r}, {x - r, y + r}}, classes);
}

std::string diamond(double x, double y, double r, const char* classes) {
  return polygon({{x, y - r}, {x + r, y}, {x, y + r}, {x - r, y}}, classes);
}

/// Styles of one colour, which are 7 apart, differ in marker and dashes.
int turn_of(int style) { return style + style / style_colours; }

}  // namespace

std::string px(double value) {
  const double rounded = std::round(value * 100) / 100;
  return fmt::format("{}", rounded == 0 ? 0 : rounded);
}

std::string line(double x1, double y1, double x2, double y2, const std::string& classes) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", px(x1), px(y1), px(x2), px(y2),
                     classes);
}

std::string text(double x, double y, const std::string& content, const std::string& classes, Anchor anchor) {
  const char* where = anchor == Anchor::middle ? " text-anchor=\"middle\""
                      : anchor == Anchor::end  ? " text-anchor=\"end\""
                                               : "";
  const std::string with = classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
  return fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", px(x), px(y), where, with, escape_xml(content));
}

std::string marker(int style, double x, double y) {
  if (style == own_style) return diamond(x, y, 6.2, "full");
  switch (turn_of(style) % style_shapes) {
    case 0:
      return circle(x, y, 3.6, "full");
    case 1:
      return square(x, y, 3.2, "full");
    case 2:
      return diamond(x, y, 4.6, "full");
    case 3:
      return circle(x, y, 3.6, "open");
    case 4:
      return square(x, y, 3.2, "open");
    case 5:
      return diamond(x, y, 4.6, "open");
    default:
      return line(x - 3.5, y - 3.5, x + 3.5, y + 3.5, "line") + line(x - 3.5, y + 3.5, x + 3.5, y - 3.5, "line");
  }
}

std::string beyond(double x, double y, int dx, int dy) {
  constexpr double r = 4.5;
  return polygon({{x + dx * r, y + dy * r},
                  {x - dx * r - dy * r, y - dy * r - dx * r},
                  {x - dx * r + dy * r, y - dy * r + dx * r}},
                 "full");
}

std::string dashes(int style) {
  if (style == own_style) return "";
  const char* pattern = dash_patterns[static_cast<std::size_t>(turn_of(style)) % std::size(dash_patterns)];
  return *pattern == 0 ? "" : fmt::format(" stroke-dasharray=\"{}\"", pattern);
}

std::string colour(int style) { return style == own_style ? "own" : fmt::format("k{}", style % style_colours); }

std::string element(double width, double height, const std::string& title, const std::string& description,
                    const std::string& content) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n<desc>{}</desc>\n{}</svg>\n",
                     px(width), px(height), escape_xml(title.empty() ? description : title), escape_xml(description),
                     content);
}

std::string group(const std::string& classes, const std::string& tip, const std::string& content,
                  const std::string& method) {
  const std::string named = tip.empty() ? "" : fmt::format("<title>{}</title>\n", escape_xml(tip));
  const std::string owner = method.empty() ? "" : fmt::format(" data-m=\"{}\"", escape_xml(method));
  return fmt::format("<g class=\"{}\"{}>\n{}{}</g>\n", classes, owner, named, content);
}

}  // namespace kvbench::report::svg
