// SPDX-License-Identifier: Apache-2.0
// Drawings and tables as files of their own.
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/document/figure_names.hpp>
#include <kvbench/report/document/latex.hpp>
#include <kvbench/report/drawing/attention_map.hpp>
#include <kvbench/report/drawing/dot_plot.hpp>
#include <kvbench/report/drawing/heat_map.hpp>
#include <kvbench/report/drawing/line_chart.hpp>
#include <kvbench/report/drawing/shapes.hpp>
#include <kvbench/report/drawing/style_sheet.hpp>
#include <kvbench/report/drawing/svg.hpp>

using namespace kvbench;
using namespace kvbench::report;

namespace {

bool holds_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const Drawing& dots() {
  static const Drawing drawing =
      draw(DotPlot{.title = "Error (a & b)",
                   .description = "d",
                   .x = {Scale::log, 0.01, 1, {{0.1, "0.1"}}, "error"},
                   .rows = {{.name = "h2o", .group = "eviction", .value = 0.1, .lo = 0.08, .hi = 0.12, .text = "0.100"},
                            {.name = "py:x", .group = "own", .style = svg::own_style, .value = 0.2, .text = "0.200"},
                            {.name = "far", .group = "eviction", .value = 50, .text = "▲ 50"}}});
  return drawing;
}

std::vector<Drawing> all_kinds() {
  const LineChart lines{.title = "t",
                        .description = "d",
                        .x = {Scale::linear, 0, 1, {{0.5, "0.5"}}, "x"},
                        .y = {Scale::log, 0.1, 10, {{1, "1"}}, "y"},
                        .lines = {{.name = "a", .style = 1, .points = {{0, 1, 0.5, 2, "tip"}, {1, 2, NAN, NAN, ""}}},
                                  {.name = "b", .role = LineRole::crowd, .points = {{0.5, 3, NAN, NAN, ""}}}},
                        .frontier = {{0, 1}, {1, 2}},
                        .levels = {1}};
  const HeatMap map{.title = "m", .description = "d", .columns = {"0"}, .rows = {{"r", "", {0.5}, {""}}}};
  const AttentionMap attention{
      .title = "a", .description = "d", .mass = {{0.5, 0.1}}, .kept = {{"k", {1, 0}}}, .tokens = 2};
  return {dots(), draw(lines), draw(map), draw(attention)};
}

}  // namespace

TEST_CASE("a style sheet gives properties by class and by what is around, with variables of the innermost rule") {
  const StyleSheet sheet(
      "/* svg .x { fill: red } */ :root { --a: #111111; --k: #222222; }\n@media print { :root { --a: #999999; } }\n"
      "svg text { fill: var(--a); font-size: 12px; }\nsvg .x { stroke: var(--k); }\nsvg .g { --k: var(--a); opacity: "
      ".5; }\nsvg .g .x { stroke-width: 3; }\nsvg .g text { font-weight: 600; }\n");
  CHECK(sheet.of({{"text", {}}}) == Properties{{"fill", "#111111"}, {"font-size", "12px"}});
  CHECK(sheet.of({{"path", {"x"}}}) == Properties{{"stroke", "#222222"}});
  CHECK(sheet.of({{"g", {"g"}}, {"path", {"x"}}}) == Properties{{"stroke", "#111111"}, {"stroke-width", "3"}});
  CHECK(sheet.of({{"g", {"g"}}, {"text", {}}}).at("font-weight") == "600");
  CHECK(sheet.of({{"path", {"unknown"}}}).empty());
}

TEST_CASE("shapes have the places of their elements and the colours of the report on light screens") {
  const Drawing drawing{.svg = svg::element(100, 50, "a < b", "d",
                                            svg::group("k0", "tip",
                                                       svg::line(1, 2, 3, 4, "whisker") +
                                                           svg::text(5, 6, "x & y", "small", svg::Anchor::end)) +
                                                "<path d=\"M1 2h3v4h-3z\" class=\"h8\"/>\n"),
                        .width = 100};
  const ShapeDrawing d = shapes_of(drawing);
  CHECK(d.title == "a < b");
  CHECK(d.width == 100);
  CHECK(d.height == 50);
  REQUIRE(d.shapes.size() == 3);
  CHECK(d.shapes[0].style.stroke == "#0072b2");  // the first colour
  CHECK(d.shapes[0].style.fill == "none");
  CHECK(d.shapes[0].style.stroke_width == 1.1);
  CHECK(d.shapes[0].lines[0].points == std::vector<std::pair<double, double>>{{1, 2}, {3, 4}});
  CHECK(d.shapes[1].text == "x & y");
  CHECK(d.shapes[1].anchor == 'e');
  CHECK(d.shapes[1].style.font_size == 11);
  CHECK(d.shapes[2].style.fill == "#0b3c70");
  CHECK(d.shapes[2].lines[0].points == std::vector<std::pair<double, double>>{{1, 2}, {4, 2}, {4, 6}, {1, 6}});
  CHECK(d.shapes[2].lines[0].closed);
  CHECK_THROWS_AS(shapes_of({.svg = "<svg viewBox=\"0 0 1 1\"><image/></svg>", .width = 1}), Error);
  CHECK_THROWS_AS(shapes_of({.svg = "<svg viewBox=\"0 0 1 1\"><path d=\"M0 0C1 1 2 2 3 3\"/></svg>", .width = 1}),
                  Error);
}

TEST_CASE("every kind of drawing becomes files without classes and variables") {
  for (const Drawing& drawing : all_kinds()) {
    CAPTURE(drawing.title);
    for (const Shape& shape : shapes_of(drawing).shapes) {
      for (const std::string& colour : {shape.style.fill, shape.style.stroke})
        CHECK((colour == "none" || (colour.starts_with("#") && colour.size() == 7)));
    }
    const std::string file = svg_file(drawing);
    for (const char* word : {"class=", "var(", "<style", "nan", "data-m"}) CHECK(!holds_text(file, word));
    CHECK(holds_text(file, "xmlns=\"http://www.w3.org/2000/svg\""));
  }
  CHECK(holds_text(svg_file(dots()), "<title>Error (a &amp; b)</title>"));
}

TEST_CASE("a PDF file has a right table of its objects, and its texts in the codes of its fonts") {
  const std::string file = pdf_file(dots());
  const std::size_t table = std::strtoul(file.c_str() + file.rfind("startxref\n") + 10, nullptr, 10);
  REQUIRE(file.compare(table, 5, "xref\n") == 0);
  for (std::size_t i = 1; i <= 7; ++i) {
    const std::size_t at = std::strtoul(file.c_str() + table + 9 + 20 * i, nullptr, 10);
    CHECK(file.compare(at, 7, fmt::format("{} 0 obj", i)) == 0);
  }
  const std::size_t begin = file.find("stream\n") + 7,
                    length = std::strtoul(file.c_str() + file.find("/Length ") + 8, nullptr, 10);
  CHECK(file.compare(begin + length, 9, "endstream") == 0);
  CHECK(holds_text(file, "(Error \\(a & b\\)) Tj"));
  CHECK(holds_text(file, "/F3 11 Tf (s) Tj\n/F1 11 Tf ( 50) Tj"));  // the triangle is of another font
  CHECK(holds_text(file, "0.894 0.000 0.486 rg"));                  // the colour of the reader's own method
}

TEST_CASE("figures are found by name, or by a part that no other has") {
  Document document{.title = "", .description = "", .made_by = "", .answers = {}, .blocks = {}};
  const auto add = [&](const char* title, std::vector<const char*> drawings) {
    Figure figure{.title = title, .drawings = {}, .caption = "", .numbers = {}};
    for (const char* name : drawings) figure.drawings.push_back({.svg = name, .width = 1, .title = name});
    document.blocks.emplace_back(std::move(figure));
  };
  add("Error by layer", {"budget 12.5%mem", "Budget 25%mem"});
  add("Error & cost", {"Cost"});
  add("Error & cost", {"Error"});
  std::vector<std::string> names;
  for (const NamedDrawing& d : drawings_of(document)) names.push_back(d.name);
  CHECK(names == std::vector<std::string>{"error-by-layer/budget-12.5mem", "error-by-layer/budget-25mem", "error-cost",
                                          "error-cost-2"});
  CHECK(find_drawing(document, "error-cost").svg == "Cost");
  CHECK(find_drawing(document, "25mem").svg == "Budget 25%mem");
  CHECK_THROWS_WITH_AS(find_drawing(document, "by-layer"), doctest::Contains("2 figures have this in their names"),
                       Error);
  CHECK_THROWS_WITH_AS(find_drawing(document, "nothing"), doctest::Contains("error-cost-2"), Error);
}

TEST_CASE("tables for LaTeX: names are escaped, rules are those of booktabs, folded tables are left out") {
  DocTable table{
      .title = "Errors at 25%",
      .columns = {{"method"}, {"95 % interval", true}, {"reason", false, true}},
      .rows = {{"snapkv[per=query_head]", "0.1 to 0.2", TableCell("a ~ b^2 \\ {x} $1 #2 & <y>", Tone::bad)}}};
  Document document{.title = "", .description = "", .made_by = "kvbench 1", .answers = {}, .blocks = {table}};
  table.folded = true, table.title = "hidden";
  document.blocks.emplace_back(table);
  const std::string text = latex(document);
  CHECK(holds_text(text, "% kvbench 1\n"));
  CHECK(holds_text(text, "\\caption{Errors at 25\\%}"));
  CHECK(holds_text(text,
                   "\\begin{tabular}{@{}lrp{0.60\\linewidth}@{}}\n\\toprule\nmethod & \\shortstack[r]{95 "
                   "\\%\\\\{}interval} & reason \\\\\n\\midrule\n"));
  CHECK(holds_text(text,
                   "snapkv[per=query\\_head] & 0.1 to 0.2 & \\textbf{a \\textasciitilde{} b\\textasciicircum{}2 "
                   "\\textbackslash{} \\{x\\} \\$1 \\#2 \\& \\textless{}y\\textgreater{}} \\\\\n\\bottomrule"));
  CHECK(!holds_text(text, "hidden"));
  for (const char* option : {"[a]", "*"}) {  // behind the end of a line
    document.blocks = {DocTable{.title = "", .columns = {{"x"}}, .rows = {{"b"}, {option}}}};
    CHECK(holds_text(latex(document), fmt::format("b \\\\\n{{}}{} \\\\\n\\bottomrule", option)));
  }
  table.folded = false;
  table.rows.assign(50, table.rows.front());
  document.blocks = {table};
  CHECK(
      holds_text(latex(document), "\\begin{longtable}{@{}lrp{0.60\\linewidth}@{}}\n\\caption{hidden} \\\\\n\\toprule"));
}
