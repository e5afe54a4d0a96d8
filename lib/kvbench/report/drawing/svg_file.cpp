// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/shapes.hpp>

#include <fmt/ranges.h>

#include <kvbench/report/drawing/svg.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr double svg_margin = 12;

std::string style_attributes(const ShapeStyle& style) {
  std::string out = fmt::format(" fill=\"{}\"", style.fill);
  if (style.stroke != "none")
    out += fmt::format(" stroke=\"{}\" stroke-width=\"{}\"", style.stroke, svg::px(style.stroke_width));
  if (style.stroke != "none" && !style.dashes.empty())
    out += fmt::format(" stroke-dasharray=\"{}\"", fmt::join(style.dashes, " "));
  return style.opacity < 1 ? out + fmt::format(" opacity=\"{}\"", svg::px(style.opacity)) : out;
}

std::string outline(const std::vector<Polyline>& lines) {
  std::string d;
  for (const Polyline& line : lines) {
    for (std::size_t i = 0; i < line.points.size(); ++i)
      d += fmt::format("{}{} {}", i == 0 ? "M" : "L", svg::px(line.points[i].first), svg::px(line.points[i].second));
    if (line.closed) d += "z";
  }
  return d;
}

std::string shape_svg(const Shape& shape) {
  const std::string style = style_attributes(shape.style);
  if (!shape.text.empty()) {
    const char* anchor = shape.anchor == 'm'   ? " text-anchor=\"middle\""
                         : shape.anchor == 'e' ? " text-anchor=\"end\""
                                               : "";
    return fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}{}{}>{}</text>\n", svg::px(shape.x), svg::px(shape.y),
                       svg::px(shape.style.font_size), shape.style.bold ? " font-weight=\"600\"" : "", anchor, style,
                       escape_xml(shape.text));
  }
  if (shape.radius > 0)
    return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", svg::px(shape.x), svg::px(shape.y),
                       svg::px(shape.radius), style);
  return shape.lines.empty() ? "" : fmt::format("<path d=\"{}\"{}/>\n", outline(shape.lines), style);
}

}  // namespace

std::string svg_file(const Drawing& drawing) {
  const ShapeDrawing d = shapes_of(drawing);
  const double width = d.width + 2 * svg_margin, height = d.height + 2 * svg_margin;
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
      "height=\"{1}\" viewBox=\"-{2} -{2} {0} {1}\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" "
      "stroke-linejoin=\"round\">\n<title>{3}</title>\n<rect x=\"-{2}\" y=\"-{2}\" width=\"{0}\" height=\"{1}\" "
      "fill=\"#ffffff\"/>\n",
      svg::px(width), svg::px(height), svg::px(svg_margin), escape_xml(d.title));
  for (const Shape& shape : d.shapes) out += shape_svg(shape);
  return out + fmt::format("</svg>\n<!-- {} -->\n", written_by);
}

}  // namespace kvbench::report
