// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/shapes.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>

#include <kvbench/core/error.hpp>
#include <kvbench/report/drawing/style_sheet.hpp>

namespace kvbench::report {
namespace {

std::string unescaped(std::string text) {
  constexpr std::pair<std::string_view, char> entities[] = {
      {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&amp;", '&'}};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t taken = 1;
    char c = text[i];
    for (const auto& [entity, character] : entities) {
      if (text.compare(i, entity.size(), entity) == 0) c = character, taken = entity.size();
    }
    out += c;
    i += taken;
  }
  return out;
}

/// The numbers of a text, whatever is between them.
std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> out;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    double value = 0;
    const auto [stop, code] = std::from_chars(at, end, value);
    if (code == std::errc{}) out.push_back(value);
    at = code == std::errc{} ? stop : at + 1;
  }
  return out;
}

double first_number(std::string_view text, double otherwise) {
  const std::vector<double> numbers = numbers_in(text);
  return numbers.empty() ? otherwise : numbers.front();
}

/// Commands M, L, h, v and z.
std::vector<Polyline> path_lines(const std::string& d) {
  std::vector<Polyline> out;
  for (std::size_t at = 0; at < d.size();) {
    const std::size_t end = std::min(d.find_first_of("MLhvz", at + 1), d.size());
    const std::vector<double> numbers = numbers_in(std::string_view(d).substr(at + 1, end - at - 1));
    if (d[at] == 'M') out.emplace_back();
    if (out.empty()) throw Error("the path '{}' of a drawing does not begin with M", d);
    auto& points = out.back().points;
    if (d[at] == 'z') {
      out.back().closed = true;
    } else if ((d[at] == 'h' || d[at] == 'v') && numbers.size() == 1 && !points.empty()) {
      const auto [x, y] = points.back();
      points.emplace_back(d[at] == 'h' ? x + numbers[0] : x, d[at] == 'v' ? y + numbers[0] : y);
    } else if (numbers.size() == 2) {
      points.emplace_back(numbers[0], numbers[1]);
    } else {
      throw Error("the path '{}' of a drawing has the unknown part '{}'", d, d.substr(at, end - at));
    }
    at = end;
  }
  return out;
}

/// A tag of the SVG, and the text behind it.
struct Tag {
  std::string name, attributes, behind;
  bool closes = false, empty = false;

  std::string attribute(const std::string& key) const {
    const std::size_t at = attributes.find(" " + key + "=\"");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + key.size() + 3;
    return attributes.substr(begin, attributes.find('"', begin) - begin);
  }
  double number(const std::string& key) const { return first_number(attribute(key), 0); }
};

std::vector<Tag> tags_of(const std::string& svg) {
  std::vector<Tag> out;
  for (std::size_t at = svg.find('<'); at < svg.size();) {
    const std::size_t end = svg.find('>', at), next = std::min(svg.find('<', end), svg.size());
    if (end == std::string::npos) throw Error("a drawing has a tag that does not end");
    Tag tag;
    tag.closes = svg[at + 1] == '/', tag.empty = svg[end - 1] == '/';
    const std::size_t begin = at + 1 + tag.closes, name = svg.find_first_of(" />", begin);
    tag.name = svg.substr(begin, name - begin);
    tag.attributes = svg.substr(name, end - name);
    tag.behind = unescaped(svg.substr(end + 1, next - end - 1));
    out.push_back(std::move(tag));
    at = next;
  }
  return out;
}

std::vector<std::string> classes_of(const Tag& tag) {
  std::vector<std::string> out(1);
  for (const char c : tag.attribute("class")) {
    if (c == ' ')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

double number_or(const Properties& properties, const char* name, double otherwise) {
  const auto known = properties.find(name);
  return known == properties.end() ? otherwise : first_number(known->second, otherwise);
}

ShapeStyle style_of(const std::vector<StyledElement>& path, const Tag& tag) {
  const Properties own = report_style().of(path);
  const auto text_or = [&](const char* name, std::string otherwise) {
    const auto known = own.find(name);
    return known == own.end() ? otherwise : known->second;
  };
  ShapeStyle style{.fill = text_or("fill", "#000000"),
                   .stroke = text_or("stroke", "none"),
                   .stroke_width = number_or(own, "stroke-width", 1),
                   .dashes = numbers_in(text_or("stroke-dasharray", tag.attribute("stroke-dasharray"))),
                   .font_size = number_or(own, "font-size", 12),
                   .bold = number_or(own, "font-weight", 400) >= 600};
  for (std::size_t depth = 1; depth <= path.size(); ++depth)
    style.opacity *=
        number_or(report_style().of({path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth)}), "opacity", 1);
  return style;
}

Shape shape_of(const Tag& tag, ShapeStyle style) {
  Shape shape{.style = std::move(style), .lines = {}, .text = {}};
  if (tag.name == "text") {
    const std::string anchor = tag.attribute("text-anchor");
    shape.x = tag.number("x"), shape.y = tag.number("y"), shape.text = tag.behind;
    shape.anchor = anchor.empty() ? 's' : anchor.front();
  } else if (tag.name == "circle") {
    shape.x = tag.number("cx"), shape.y = tag.number("cy"), shape.radius = tag.number("r");
  } else if (tag.name == "line") {
    shape.lines = {{{{tag.number("x1"), tag.number("y1")}, {tag.number("x2"), tag.number("y2")}}, false}};
  } else if (tag.name == "rect") {
    const double x = tag.number("x"), y = tag.number("y"), w = tag.number("width"), h = tag.number("height");
    shape.lines = {{{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, true}};
  } else if (tag.name == "polygon") {
    const std::vector<double> numbers = numbers_in(tag.attribute("points"));
    shape.lines = {{{}, true}};
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
      shape.lines[0].points.emplace_back(numbers[i], numbers[i + 1]);
  } else if (tag.name == "path") {
    shape.lines = path_lines(tag.attribute("d"));
  } else {
    throw Error("a drawing has the unknown element '{}'", tag.name);
  }
  return shape;
}

}  // namespace

ShapeDrawing shapes_of(const Drawing& drawing) {
  ShapeDrawing out;
  std::vector<StyledElement> path;
  for (const Tag& tag : tags_of(drawing.svg)) {
    if (tag.closes) {
      if (tag.name == "g" && !path.empty()) path.pop_back();
    } else if (tag.name == "svg") {
      const std::vector<double> box = numbers_in(tag.attribute("viewBox"));
      if (box.size() != 4) throw Error("a drawing has no viewBox");
      out.width = box[2], out.height = box[3], out.title = unescaped(tag.attribute("aria-label"));
    } else if (tag.name == "g") {
      path.push_back({tag.name, classes_of(tag)});
    } else if (tag.name != "title" && tag.name != "desc") {
      path.push_back({tag.name, classes_of(tag)});
      out.shapes.push_back(shape_of(tag, style_of(path, tag)));
      path.pop_back();
    }
  }
  return out;
}

}  // namespace kvbench::report
