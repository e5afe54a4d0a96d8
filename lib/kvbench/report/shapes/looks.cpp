// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/shapes/looks.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>

namespace kvbench::report {
namespace {

struct Colour {
  std::string_view name, light, dark, print;  ///< print "": as light
};

/// c0 .. c6: palette of Okabe and Ito, distinguishable with any colour vision (the text colour replaces yellow, which
/// is too faint on white). Dark: the same hues, lighter. own, o1 .. o3: colours of the
/// reader's own methods. h0 .. h8: one hue from faint to strong, for heat maps; t0 ..
/// t8: readable text colours on h0 .. h8.
constexpr Colour colours[] = {
    {"paper", "#ffffff", "#15181c", ""},       {"ink", "#1a1a1a", "#e6e8eb", "#000000"},
    {"soft", "#5a5f66", "#a2a9b2", "#444444"}, {"grid", "#e7e9ec", "#2a2f36", "#dddddd"},
    {"shade", "#f5f6f8", "#1e2329", ""},       {"faint", "#c6cad0", "#4d545e", "#bbbbbb"},
    {"c0", "#0072b2", "#4ea8e6", ""},          {"c1", "#d55e00", "#ff8a3d", ""},
    {"c2", "#009e73", "#2fc79a", ""},          {"c3", "#b5568f", "#e08cc0", ""},
    {"c4", "#d18b00", "#f2b134", ""},          {"c5", "#3a9ad9", "#8fd0ff", ""},
    {"c6", "#1a1a1a", "#e6e8eb", "#000000"},   {"own", "#e4007c", "#ff5cb3", ""},
    {"o1", "#6f2cff", "#b79bff", ""},          {"o2", "#7a4010", "#d9a066", ""},
    {"o3", "#5f8a00", "#b4e04a", ""},          {"h0", "#f1f6fb", "#1b222a", ""},
    {"h1", "#dbe8f4", "#1c2e41", ""},          {"h2", "#c2d8eb", "#1d3d5c", ""},
    {"h3", "#a3c4e0", "#1f4e79", ""},          {"h4", "#7dabd2", "#286398", ""},
    {"h5", "#568fc1", "#3d7fb8", ""},          {"h6", "#3673ad", "#619dd0", ""},
    {"h7", "#1d5793", "#93c0e6", ""},          {"h8", "#0b3c70", "#cfe5f8", ""},
    {"t0", "#1a1a1a", "#e6e8eb", "#000000"},   {"t1", "#1a1a1a", "#e6e8eb", "#000000"},
    {"t2", "#1a1a1a", "#e6e8eb", "#000000"},   {"t3", "#1a1a1a", "#e6e8eb", "#000000"},
    {"t4", "#1a1a1a", "#ffffff", "#000000"},   {"t5", "#ffffff", "#ffffff", ""},
    {"t6", "#ffffff", "#10141a", ""},          {"t7", "#ffffff", "#10141a", ""},
    {"t8", "#ffffff", "#10141a", ""},
};

/// What a class sets; members at their defaults set nothing.
struct Look {
  std::string name;                    ///< the class; "text": every text
  std::string_view inside = "";        ///< only inside groups of this class
  std::string fill = "", stroke = "";  ///< "none", a colour of the table, or "k": the colour of the group
  double width = 0;                    ///< of the stroke
  std::vector<double> dashes = {};
  double opacity = 1, font_size = 0;
  bool bold = false;
  std::string colour = "";          ///< of a group: what "k" is inside it
  std::string_view page_only = "";  ///< CSS that files do without
};

/// Later rows overrule earlier ones.
const std::vector<Look>& looks() {
  static const std::vector<Look> table = [] {
    std::vector<Look> all = {
        {.name = "text",
         .fill = "ink",
         .font_size = 12,
         .page_only = "font-family: system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, "
                      "\"Liberation Sans\", sans-serif;"},
        {.name = "soft", .fill = "soft"},
        {.name = "head", .font_size = 13, .bold = true},
        {.name = "small", .font_size = 11},
        {.name = "grid", .fill = "none", .stroke = "grid"},
        {.name = "frame", .fill = "none", .stroke = "soft"},
        {.name = "faint", .fill = "none", .stroke = "faint", .width = 1},
        {.name = "tint", .stroke = "k", .opacity = 0.3},
        {.name = "reference", .fill = "none", .stroke = "soft", .width = 1.6, .dashes = {1.5, 3}},
        {.name = "frontier",
         .fill = "none",
         .stroke = "ink",
         .width = 5,
         .opacity = 0.18,
         .page_only = "stroke-linejoin: round; stroke-linecap: round;"},
        {.name = "line", .fill = "none", .stroke = "k", .width = 1.8, .page_only = "stroke-linejoin: round;"},
        {.name = "whisker", .fill = "none", .stroke = "k", .width = 1.1},
        {.name = "full", .fill = "k", .stroke = "k", .width = 1},
        {.name = "open", .fill = "paper", .stroke = "k", .width = 1.6},
        {.name = "grey", .colour = "soft"},
        {.name = "own", .colour = "own"},
        {.name = "line", .inside = "own", .width = 3},
        {.name = "whisker", .inside = "own", .width = 2},
        {.name = "text", .inside = "own", .bold = true},
        {.name = "crowd", .opacity = 0.45},
        {.name = "guide", .fill = "none", .stroke = "grid", .dashes = {1, 3}},
        {.name = "level", .fill = "none", .stroke = "ink", .width = 1.2, .dashes = {6, 3}, .opacity = 0.7},
        {.name = "leader", .fill = "none", .stroke = "k", .width = 0.9, .opacity = 0.6},
        {.name = "vague", .fill = "grid", .opacity = 0.7},
        {.name = "hx", .fill = "shade"},
        {.name = "tx", .fill = "soft"},
        {.name = "name"},
        {.name = "point"},
        {.name = "cell"},
        {.name = "strip"},  // for scripts
    };
    for (const Colour& c : colours) {
      const std::string name(c.name);
      if (c.name.size() != 2) continue;
      if (name[0] == 'c')
        all.push_back({.name = "k" + name.substr(1), .colour = name});
      else if (name[0] == 'o')
        all.push_back({.name = name, .colour = name});
      else
        all.push_back({.name = name, .fill = name});
    }
    return all;
  }();
  return table;
}

std::string variables(std::string_view Colour::*of) {
  std::string out = ":root {";
  for (const Colour& c : colours) out += fmt::format(" --{}: {};", c.name, (c.*of).empty() ? c.light : c.*of);
  return out + " }";
}

std::string paint_css(const std::string& colour) {
  return colour == "none" ? colour : fmt::format("var(--{})", colour);
}

std::string rule_css(const Look& look) {
  const auto selector = [](std::string_view name) { return (name == "text" ? "" : ".") + std::string(name); };
  std::string out;
  const auto set = [&](bool given, const char* property, const std::string& value) {
    if (given) out += fmt::format(" {}: {};", property, value);
  };
  set(!look.colour.empty(), "--k", paint_css(look.colour));
  set(!look.fill.empty(), "fill", paint_css(look.fill));
  set(!look.stroke.empty(), "stroke", paint_css(look.stroke));
  set(look.width > 0, "stroke-width", fmt::format("{}", look.width));
  set(!look.dashes.empty(), "stroke-dasharray", fmt::format("{}", fmt::join(look.dashes, " ")));
  set(look.opacity < 1, "opacity", fmt::format("{}", look.opacity));
  set(look.font_size > 0, "font-size", fmt::format("{}px", look.font_size));
  set(look.bold, "font-weight", "600");
  if (!look.page_only.empty()) out += fmt::format(" {}", look.page_only);
  const std::string around = look.inside.empty() ? "" : selector(look.inside) + " ";
  return out.empty() ? "" : fmt::format("svg {}{} {{{} }}\n", around, selector(look.name), out);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// What groups hand on to the shapes in them.
struct Surroundings {
  std::vector<std::string_view> classes;
  std::string colour = "none";  ///< what "k" is
  double opacity = 1;
};

std::string light(const std::string& colour, const Surroundings& around) {
  const std::string& name = colour == "k" ? around.colour : colour;
  const auto* known = std::ranges::find(colours, name, &Colour::name);
  return known == std::end(colours) ? name : std::string(known->light);
}

/// The style of a shape, or of a group, and what it hands on.
ShapeStyle style_of(const Shape& shape, Surroundings& around) {
  std::vector<std::string_view> own = words_of(shape.classes);
  if (std::holds_alternative<Text>(shape.form)) own.emplace_back("text");
  for (const std::string_view name : own) {
    if (std::ranges::find(looks(), name, &Look::name) == looks().end())
      throw Error("a shape of a drawing has the class '{}', which the table of looks lacks", name);
  }
  ShapeStyle style;
  const auto among = [](std::string_view name, const auto& list) {
    return std::ranges::find(list, name) != list.end();
  };
  for (const Look& look : looks()) {
    if (!among(look.name, own) || (!look.inside.empty() && !among(look.inside, around.classes))) continue;
    if (!look.colour.empty()) around.colour = look.colour;
    if (!look.fill.empty()) style.fill = light(look.fill, around);
    if (!look.stroke.empty()) style.stroke = light(look.stroke, around);
    if (look.width > 0) style.stroke_width = look.width;
    if (!look.dashes.empty()) style.dashes = look.dashes;
    if (look.opacity < 1) style.opacity = look.opacity;
    if (look.font_size > 0) style.font_size = look.font_size;
    if (look.bold) style.bold = true;
  }
  style.opacity = around.opacity *= style.opacity;
  std::ranges::copy(own, std::back_inserter(around.classes));
  return style;
}

void add_styled(const Shapes& shapes, const Surroundings& around, std::vector<StyledShape>& out) {
  for (const Shape& shape : shapes.list) {
    Surroundings inside = around;
    ShapeStyle style = style_of(shape, inside);
    if (const auto* group = std::get_if<Group>(&shape.form)) {
      add_styled(group->shapes, inside, out);
      continue;
    }
    const auto* outline = std::get_if<Outline>(&shape.form);
    if (outline != nullptr && style.dashes.empty()) style.dashes.assign(outline->dashes.begin(), outline->dashes.end());
    out.push_back({&shape, std::move(style)});
  }
}

}  // namespace

std::string looks_css() {
  std::string out = fmt::format("{}\n@media (prefers-color-scheme: dark) {{ {} }}\n@media print {{ {} }}\n",
                                variables(&Colour::light), variables(&Colour::dark), variables(&Colour::print));
  for (const Look& look : looks()) out += rule_css(look);
  return out;
}

std::vector<StyledShape> styled_shapes(const Drawing& drawing) {
  std::vector<StyledShape> out;
  add_styled(drawing.shapes, {}, out);
  return out;
}

}  // namespace kvbench::report
