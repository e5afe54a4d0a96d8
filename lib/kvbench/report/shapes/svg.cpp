// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include <fmt/ranges.h>

#include <kvbench/report/shapes/looks.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using shape::px;

constexpr double svg_margin = 12;

/// "M1 2L3 4H5V6", closed lines with a z.
std::string path_data(const std::vector<Polyline>& lines) {
  std::string d;
  for (const Polyline& line : lines) {
    std::string before_x, before_y;
    for (const Point& point : line.points) {
      const std::string x = px(point.first), y = px(point.second);
      const char step = before_x.empty() ? 'M' : x == before_x ? 'V' : y == before_y ? 'H' : 'L';
      d += step + (step == 'V' ? y : step == 'H' ? x : x + " " + y);
      before_x = x, before_y = y;
    }
    if (line.closed) d += "z";
  }
  return d;
}

/// The same in relative coordinates, which are shorter.
std::string boxes_data(const std::vector<Polyline>& boxes) {
  std::string d;
  for (const Polyline& box : boxes) {
    const auto [x, y] = box.points[0];
    const std::string width = px(box.points[2].first - x);
    d += fmt::format("M{} {}h{}v{}h-{}z", px(x), px(y), width, px(box.points[2].second - y), width);
  }
  return d;
}

std::string points_text(const std::vector<Point>& points) {
  std::string out;
  for (const auto& [x, y] : points) out += (out.empty() ? "" : " ") + px(x) + "," + px(y);
  return out;
}

/// The beginning of an element, up to its geometry.
std::string geometry(const Outline& outline) {
  if (outline.lines.empty()) return "<path d=\"\"";
  const std::vector<Point>& p = outline.lines.front().points;
  switch (outline.kind) {
    case OutlineKind::line:
      return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", px(p[0].first), px(p[0].second),
                         px(p[1].first), px(p[1].second));
    case OutlineKind::polygon:
      return fmt::format("<polygon points=\"{}\"", points_text(p));
    case OutlineKind::rect:
      return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", px(p[0].first), px(p[0].second),
                         px(p[2].first - p[0].first), px(p[2].second - p[0].second));
    case OutlineKind::rects:
      return fmt::format("<path d=\"{}\"", boxes_data(outline.lines));
    default:
      return fmt::format("<path d=\"{}\"", path_data(outline.lines));
  }
}

std::string geometry(const Circle& circle) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"", px(circle.centre.first), px(circle.centre.second),
                     px(circle.radius));
}

std::string geometry(const Text& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\"", px(text.at.first), px(text.at.second));
}

const char* anchor_attribute(const Text& text) {
  constexpr const char* attributes[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  return attributes[static_cast<std::size_t>(text.anchor)];
}

std::string dash_attribute(std::span<const double> dashes) {
  return dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", fmt::join(dashes, " "));
}

std::string elements(const Shapes& shapes);

/// An element of a page, whose style sheet has the classes.
struct PageElement {
  const std::string& classes;

  std::string operator()(const Outline& outline) const {
    return fmt::format("{} class=\"{}\"{}/>\n", geometry(outline), classes, dash_attribute(outline.dashes));
  }
  std::string operator()(const Circle& circle) const {
    return fmt::format("{} class=\"{}\"/>\n", geometry(circle), classes);
  }
  std::string operator()(const Text& text) const {
    const std::string with = classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
    return geometry(text) + anchor_attribute(text) + with + ">" + escape_xml(text.content) + "</text>\n";
  }
  std::string operator()(const Group& group) const {
    const std::string named = group.tip.empty() ? "" : fmt::format("<title>{}</title>\n", escape_xml(group.tip));
    const std::string owner = group.method.empty() ? "" : fmt::format(" data-m=\"{}\"", escape_xml(group.method));
    return fmt::format("<g class=\"{}\"{}>\n{}{}</g>\n", classes, owner, named, elements(group.shapes));
  }
};

std::string elements(const Shapes& shapes) {
  std::string out;
  for (const Shape& shape : shapes.list) out += std::visit(PageElement{shape.classes}, shape.form);
  return out;
}

/// An element of a file: <TAG STYLE GEOMETRY. Neighbours of one tag and style may share it: the data of paths are
/// joined, others stand in a group.
struct FileElement {
  std::string tag, style, geometry;
  bool shares = true;  ///< whether they do
};

std::string attributes(const ShapeStyle& style) {
  std::string out = style.fill == "none" ? "" : fmt::format(" fill=\"{}\"", style.fill);  // the file's own
  if (style.stroke != "none")
    out += fmt::format(" stroke=\"{}\"{}{}", style.stroke,
                       style.stroke_width == 1 ? "" : fmt::format(" stroke-width=\"{}\"", px(style.stroke_width)),
                       dash_attribute(style.dashes));
  return style.opacity < 1 ? out + fmt::format(" opacity=\"{}\"", px(style.opacity)) : out;
}

struct InFile {
  const ShapeStyle& style;

  FileElement operator()(const Outline& outline) const {
    // Data lines stay apart, dashes begin anew, and what is filled or see-through may overlap.
    const bool shares = style.fill == "none" && style.opacity == 1 && style.dashes.empty() && style.stroke_width == 1;
    return {"path", attributes(style), path_data(outline.lines), shares};
  }
  FileElement operator()(const Circle& circle) const {
    return {"circle", attributes(style), geometry(circle).substr(7) + "/>\n", style.opacity == 1};
  }
  FileElement operator()(const Text& text) const {
    return {"text",
            fmt::format(" font-size=\"{}\"{}{}{}", px(style.font_size), style.bold ? " font-weight=\"600\"" : "",
                        anchor_attribute(text), attributes(style)),
            geometry(text).substr(5) + ">" + escape_xml(text.content) + "</text>\n"};
  }
  FileElement operator()(const Group&) const { return {}; }
};

/// Those of a drawing, texts last and sorted by style.
std::vector<FileElement> file_elements(const Drawing& drawing) {
  std::vector<FileElement> out;
  for (const StyledShape& s : styled_shapes(drawing)) out.push_back(std::visit(InFile{s.style}, s.shape->form));
  std::erase_if(out, [](const FileElement& e) { return e.geometry.empty() || e.geometry.ends_with("></text>\n"); });
  const auto texts =
      std::stable_partition(out.begin(), out.end(), [](const FileElement& e) { return e.tag != "text"; });
  std::stable_sort(texts, out.end(), [](const FileElement& a, const FileElement& b) { return a.style < b.style; });
  return out;
}

/// Elements of one tag and style.
std::string written(std::span<const FileElement> run) {
  const FileElement& first = run.front();
  std::string inside;
  if (first.tag == "path") {
    for (const FileElement& e : run) inside += e.geometry;
    return fmt::format("<path{} d=\"{}\"/>\n", first.style, inside);
  }
  if (run.size() == 1) return fmt::format("<{}{}{}", first.tag, first.style, first.geometry);
  for (const FileElement& e : run) inside += fmt::format("<{}{}", e.tag, e.geometry);
  return fmt::format("<g{}>\n{}</g>\n", first.style, inside);
}

}  // namespace

std::string svg_element(const Drawing& drawing) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n<desc>{}</desc>\n{}</svg>\n",
                     px(drawing.width), px(drawing.height), escape_xml(drawing.label()),
                     escape_xml(drawing.description), elements(drawing.shapes));
}

std::string svg_file(const Drawing& drawing) {
  const double width = drawing.width + 2 * svg_margin, height = drawing.height + 2 * svg_margin;
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
      "height=\"{1}\" viewBox=\"-{2} -{2} {0} {1}\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" "
      "stroke-linejoin=\"round\" fill=\"none\">\n<title>{3}</title>\n<rect x=\"-{2}\" y=\"-{2}\" width=\"{0}\" "
      "height=\"{1}\" fill=\"#ffffff\"/>\n",
      px(width), px(height), px(svg_margin), escape_xml(drawing.label()));
  const std::vector<FileElement> all = file_elements(drawing);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const FileElement& first = all[begin];
    for (end = begin + 1;
         end < all.size() && first.shares && all[end].tag == first.tag && all[end].style == first.style;)
      ++end;
    out += written(std::span(all).subspan(begin, end - begin));
  }
  return out + fmt::format("</svg>\n<!-- {} -->\n", written_by);
}

}  // namespace kvbench::report
