// SPDX-License-Identifier: Apache-2.0
// Drawings and tables as files of their own.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/shapes/looks.hpp>
#include <kvbench/report/text/text.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::report;
using namespace kvbench::testing;

namespace {

constexpr double dashes[] = {2, 2.5};

const Drawing& dots() {
  static const Drawing drawing = draw(
      DotPlot{.title = "Error (a & b)",
              .description = "d",
              .x = {Scale::log, 0.01, 1, {{0.1, "0.1"}}, "error"},
              .rows = {{.name = "h2o", .group = "eviction", .value = 0.1, .lo = 0.08, .hi = 0.12, .text = "0.100"},
                       {.name = "py:x", .group = "own", .style = marks::own_style(0), .value = 0.2, .text = "0.200"},
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

TEST_CASE("one table of looks is the style sheet of pages and the styles of files") {
  const std::string css = looks_css();
  CHECK(contains(css, ":root { --paper: #ffffff;"));
  CHECK(contains(css, "@media (prefers-color-scheme: dark) { :root { --paper: #15181c;"));
  CHECK(
      contains(css, "svg .reference { fill: none; stroke: var(--soft); stroke-width: 1.6; stroke-dasharray: 1.5 3; }"));
  CHECK(contains(css, "svg .own text { font-weight: 600; }\n"));
  CHECK(contains(css, "svg .k0 { --k: var(--c0); }\n"));
  CHECK(contains(css, "svg .h8 { fill: var(--h8); }\n"));
  CHECK(!contains(css, ".point"));  // a class for scripts alone
  const Drawing drawing{.shapes = shape::group("k0 crowd", "tip",
                                               shape::line(1, 2, 3, 4.004, "whisker") +
                                                   shape::text(5, 6, "x & y", "small", Anchor::end)) +
                                  shape::rects({shape::box(1, 2, 3, 4)}, "h8") +
                                  shape::group("own", "",
                                               shape::text(0, 0, "mine", "") + shape::line(0, 0, 1, 1, "line") +
                                                   shape::circle(1, 1, 2, "open"))};
  const std::vector<StyledShape> shapes = styled_shapes(drawing);
  REQUIRE(shapes.size() == 6);
  CHECK(shapes[0].style.stroke == "#0072b2");  // the first colour
  CHECK(shapes[0].style.fill == "none");
  CHECK(shapes[0].style.stroke_width == 1.1);
  CHECK(shapes[0].style.opacity == 0.45);
  CHECK(std::get<Outline>(shapes[0].shape->form).lines[0].points == std::vector<Point>{{1, 2}, {3, 4}});
  CHECK(shapes[1].style.font_size == 11);
  CHECK(shapes[1].style.fill == "#1a1a1a");
  CHECK(!shapes[1].style.bold);
  CHECK(shapes[2].style.fill == "#0b3c70");
  CHECK(shapes[2].style.stroke == "none");
  CHECK(shapes[3].style.bold);
  CHECK(shapes[4].style.stroke == "#e4007c");
  CHECK(shapes[4].style.stroke_width == 3);
  CHECK(shapes[5].style.fill == "#ffffff");
  CHECK_THROWS_WITH_AS(styled_shapes({.shapes = shape::circle(0, 0, 1, "unknown")}), doctest::Contains("'unknown'"),
                       Error);
}

TEST_CASE("the elements of a page have classes and tooltips, those of a file styles") {
  const Drawing drawing{.shapes = shape::group("k1", "t < u", shape::rects({shape::box(1, 2, 3, 4)}, "full"), "a&b") +
                                  shape::path({{{{0, 0}, {1, 1}}, false}, {{{2, 2}}, false}}, "frame", dashes) +
                                  shape::polygon({{0, 0}, {1.005, 0}, {0, 1}}, "h0") + shape::rect(1, 2, 3, 4, "hx"),
                        .width = 9,
                        .height = 8,
                        .description = "d"};
  CHECK(
      svg_element(drawing) ==
      "<svg viewBox=\"0 0 9 8\" role=\"img\" aria-label=\"d\">\n<desc>d</desc>\n"
      "<g class=\"k1\" data-m=\"a&amp;b\">\n<title>t &lt; u</title>\n<path d=\"M1 2h3v4h-3z\" class=\"full\"/>\n</g>\n"
      "<path d=\"M0 0L1 1M2 2\" class=\"frame\" stroke-dasharray=\"2 2.5\"/>\n"
      "<polygon points=\"0,0 1,0 0,1\" class=\"h0\"/>\n"
      "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" class=\"hx\"/>\n</svg>\n");
  const std::string file = svg_file(drawing);
  CHECK(contains(file, "<path fill=\"#d55e00\" stroke=\"#d55e00\" d=\"M1 2H4V6H1z\"/>\n"));
  CHECK(contains(file, "<path stroke=\"#5a5f66\" stroke-dasharray=\"2 2.5\" d=\"M0 0L1 1M2 2\"/>\n"));
}

TEST_CASE("every kind of drawing becomes files without classes and variables") {
  for (const Drawing& drawing : all_kinds()) {
    CAPTURE(drawing.title);
    for (const StyledShape& shape : styled_shapes(drawing)) {
      for (const std::string& colour : {shape.style.fill, shape.style.stroke})
        CHECK((colour == "none" || (colour.starts_with("#") && colour.size() == 7)));
    }
    const std::string file = svg_file(drawing);
    for (const char* word : {"class=", "var(", "<style", "nan", "data-m"}) CHECK(!contains(file, word));
    CHECK(contains(file, "xmlns=\"http://www.w3.org/2000/svg\""));
  }
  CHECK(contains(svg_file(dots()), "<title>Error (a &amp; b)</title>"));
}

TEST_CASE("a PDF file is the same at any time, and a text that is not UTF-8 is an error") {
  const std::string file = pdf_file(dots());
  CHECK(file.starts_with("%PDF-1.4"));
  CHECK(contains(file, std::string(written_by)));
  CHECK(!contains(file, "CreationDate"));
  CHECK(pdf_file(dots()) == file);
  CHECK_THROWS_AS(pdf_file({.shapes = shape::text(0, 0, "\xff", ""), .width = 1, .height = 1}), Error);
}

TEST_CASE("figures are found by name, or by a part that no other has") {
  Document document;
  const auto add = [&](const char* title, std::vector<const char*> drawings) {
    Figure figure{.title = title};
    for (const char* name : drawings) figure.drawings.push_back({.title = name});
    document.blocks.emplace_back(std::move(figure));
  };
  add("Error by layer", {"budget 12.5%mem", "Budget 25%mem"});
  add("Error & cost", {"Cost"});
  add("Error & cost", {"Error"});
  std::vector<std::string> names;
  for (const NamedDrawing& d : drawings_of(document)) names.push_back(d.name);
  CHECK(names == std::vector<std::string>{"error-by-layer/budget-12.5mem", "error-by-layer/budget-25mem", "error-cost",
                                          "error-cost-2"});
  CHECK(find_drawing(document, "error-cost").drawing->title == "Cost");
  CHECK(find_drawing(document, "25mem").drawing->title == "Budget 25%mem");
  CHECK_THROWS_WITH_AS(find_drawing(document, "by-layer"), doctest::Contains("2 figures have this in their names"),
                       Error);
  CHECK_THROWS_WITH_AS(find_drawing(document, "nothing"), doctest::Contains("error-cost-2"), Error);
}

TEST_CASE("tables for LaTeX: names are escaped, rules are those of booktabs, folded tables are left out") {
  DocTable table{
      .title = "Errors at 25%",
      .columns = {{"method"}, {"95 % interval", true}, {"reason", false, true}},
      .rows = {{"snapkv[per=query_head]", "0.1 to 0.2", TableCell("a ~ b^2 \\ {x} $1 #2 & <y>", Tone::bad)}}};
  Document document{.made_by = "kvbench 1", .blocks = {table}};
  table.folded = true, table.title = "hidden";
  document.blocks.emplace_back(table);
  const std::string text = latex(document);
  CHECK(contains(text, "% kvbench 1\n"));
  CHECK(contains(text, "\\caption{Errors at 25\\% (95 \\% interval: "));
  CHECK(contains(text,
                 "\\begin{tabular}{@{}lrp{0.60\\linewidth}@{}}\n\\toprule\nmethod & \\shortstack[r]{95 "
                 "\\%\\\\{}interval} & reason \\\\\n\\midrule\n"));
  CHECK(contains(text,
                 "snapkv[per=query\\_head] & 0.1 to 0.2 & \\textbf{a \\textasciitilde{} b\\textasciicircum{}2 "
                 "\\textbackslash{} \\{x\\} \\$1 \\#2 \\& \\textless{}y\\textgreater{}} \\\\\n\\bottomrule"));
  CHECK(!contains(text, "hidden"));
  for (const char* option : {"[a]", "*"}) {  // behind the end of a line
    document.blocks = {DocTable{.columns = {{"x"}}, .rows = {{"b"}, {option}}}};
    CHECK(contains(latex(document), fmt::format("b \\\\\n{{}}{} \\\\\n\\bottomrule", option)));
  }
  table.folded = false;
  table.rows.assign(50, table.rows.front());
  document.blocks = {table};
  CHECK(
      contains(latex(document), "\\begin{longtable}{@{}lrp{0.60\\linewidth}@{}}\n\\caption{hidden (95 \\% interval: "));
}
