// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/drawing/labels.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/text/text.hpp>

using namespace kvbench;
using namespace kvbench::report;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> out;
  for (const Tick& tick : ticks) out.push_back(tick.label);
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string svg_of(const auto& drawn) { return svg_element(draw(drawn)); }

std::string mark_of(int style) { return svg_element({.shapes = marks::marker(style, 0, 0)}); }

LineChart chart(std::vector<ChartPoint> points) {
  return {.title = "t",
          .description = "d",
          .x = {Scale::log, 1, 100, {}, "x"},
          .y = {Scale::log, 0.1, 10, {}, "y"},
          .lines = {{.name = "m", .detail = "a=1", .points = std::move(points)}}};
}

}  // namespace

TEST_CASE("log ticks are 1, 2 and 5 times powers of ten") {
  CHECK(labels(log_ticks(0.1, 1)) == std::vector<std::string>{"0.1", "0.2", "0.5", "1"});
  CHECK(labels(log_ticks(0.06, 0.7)) == std::vector<std::string>{"0.1", "0.2", "0.5"});
  // Four decades: labels at the powers only.
  CHECK(labels(log_ticks(1, 1e4)) ==
        std::vector<std::string>{"1", "", "", "10", "", "", "100", "", "", "1000", "", "", "10000"});
  // Nineteen decades: every third power, no ticks between.
  CHECK(labels(log_ticks(1e-9, 1e10)) ==
        std::vector<std::string>{"1e-09", "1e-06", "0.001", "1", "1000", "1e+06", "1e+09"});
  // A quarter of a decade would have one such tick; it has linear ticks instead.
  CHECK(labels(log_ticks(0.09, 0.16)) == std::vector<std::string>{"0.1", "0.12", "0.14", "0.16"});
}

TEST_CASE("linear ticks are round and include zero as 0") {
  CHECK(labels(linear_ticks(0, 1)) == std::vector<std::string>{"0", "0.2", "0.4", "0.6", "0.8", "1"});
  CHECK(labels(linear_ticks(-0.3, 0.3)) == std::vector<std::string>{"-0.2", "0", "0.2"});
  CHECK(labels(linear_ticks(0, 255)) == std::vector<std::string>{"0", "100", "200"});
  CHECK(linear_ticks(1e20, 1e20 + 16384).size() <= 11);  // a step that is lost in the rounding of the values
  CHECK(linear_ticks(1, 1).empty());
  CHECK(linear_ticks(0, inf).empty());
}

TEST_CASE("positions on an axis") {
  const Axis log{Scale::log, 0.1, 10, {}, ""}, linear{Scale::linear, -1, 3, {}, ""};
  CHECK(log.at(0.1) == doctest::Approx(0));
  CHECK(log.at(1) == doctest::Approx(0.5));
  CHECK(log.at(0) == -inf);
  CHECK(log.at(-2) == -inf);
  CHECK(log.at(inf) == inf);
  CHECK(std::isnan(log.at(NAN)));
  CHECK(linear.at(0) == 0.25);
  CHECK(!log.shows(11));
  CHECK(log.shows(9));
}

TEST_CASE("a huge mean, zeros and infinities do not stretch a log axis") {
  // Logarithms of the eight: quartiles within 0.1 .. 0.8; the fence lies at least half a decade beyond them.
  const std::vector<double> values = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 2700, 1e-9, 0, -1, inf, NAN};
  const Extent extent = log_extent(values);
  CHECK(extent.lo < 0.1);
  CHECK(extent.lo > 0.08);
  CHECK(extent.hi > 0.8);
  CHECK(extent.hi < 1);
  const Extent none = log_extent(std::vector<double>{0, NAN, inf});
  CHECK(none.lo == 0.1);
  CHECK(none.hi == 1);
  const Extent one = log_extent(std::vector<double>{0.5});
  CHECK(one.lo < 0.5);
  CHECK(one.hi > 0.5);
}

TEST_CASE("log axes of any positive numbers are finite and have few ticks") {
  const std::vector<double> numbers = {5e-324, 1e-308, 1e-300, 1e-3, 0.5, 7, 1e300, 1e308, 1.7e308};
  for (const double a : numbers) {
    for (const double b : numbers) {
      const Extent extent = log_extent(std::vector<double>{a, a, b, b});
      CAPTURE(a);
      CAPTURE(b);
      REQUIRE((0 < extent.lo && extent.lo < extent.hi && std::isfinite(extent.hi)));
      const std::vector<Tick> ticks = log_ticks(extent.lo, extent.hi);
      CHECK((!ticks.empty() && ticks.size() < 40));
      const Axis axis{.scale = Scale::log, .lo = extent.lo, .hi = extent.hi, .ticks = ticks};
      for (const Tick& tick : ticks) CHECK((axis.at(tick.value) > -1e-6 && axis.at(tick.value) < 1 + 1e-6));
      for (const double value : {a, b}) CHECK(!std::isnan(axis.at(value)));
      for (const double value : {a, b}) CHECK((heat_class(value, extent.lo, extent.hi) >= '0'));
    }
  }
}

TEST_CASE("labels that do not touch keep their preferred positions") {
  const std::vector<LabelSlot> slots = {{20, 10}, {50, 10}};
  CHECK(spread_labels(slots, 0, 100) == std::vector<double>{20, 50});
}

TEST_CASE("overlapping labels move apart by as little as possible and keep their order") {
  // Both prefer 50: 45 and 55. The label with the lower preferred position stays below.
  const std::vector<LabelSlot> pair = {{50, 10}, {50, 10}};
  CHECK(spread_labels(pair, 0, 100) == std::vector<double>{45, 55});
  const std::vector<LabelSlot> crossed = {{52, 10}, {48, 10}};
  CHECK(spread_labels(crossed, 0, 100) == std::vector<double>{55, 45});
  // 40, 41 and 46 with heights 10, 20, 10. Preferred tops: 35, 31, 41; minus the heights above them: 35, 21, 11, mean
  // 22.33.
  const std::vector<LabelSlot> three = {{40, 10}, {41, 20}, {46, 10}};
  const std::vector<double> placed = spread_labels(three, 0, 100);
  CHECK(placed[0] == doctest::Approx(22.3333 + 5));
  CHECK(placed[1] == doctest::Approx(32.3333 + 10));
  CHECK(placed[2] == doctest::Approx(52.3333 + 5));
}

TEST_CASE("labels stay within the column, or overflow downwards if they do not fit") {
  const std::vector<LabelSlot> low = {{98, 10}, {99, 10}, {30, 10}};
  CHECK(spread_labels(low, 0, 100) == std::vector<double>{85, 95, 30});
  const std::vector<LabelSlot> high = {{1, 10}, {2, 10}};
  CHECK(spread_labels(high, 0, 100) == std::vector<double>{5, 15});
  const std::vector<LabelSlot> full = {{5, 10}, {5, 10}, {5, 10}};
  CHECK(spread_labels(full, 0, 25) == std::vector<double>{5, 15, 25});
  CHECK(spread_labels({}, 0, 10).empty());
}

TEST_CASE("parameters wrap after semicolons") {
  CHECK(wrap_params("", 10).empty());
  CHECK(wrap_params("a=1;b=2", 10) == std::vector<std::string>{"a=1;b=2"});
  CHECK(wrap_params("alpha=1;beta=2", 10) == std::vector<std::string>{"alpha=1;", "beta=2"});
}

TEST_CASE("texts are escaped for tags and attributes") {
  CHECK(escape_xml("a<b>&\"c\"'d'") == "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  const std::string svg = svg_element({.shapes = shape::text(1, 2.5, "<&>", "soft"),
                                       .width = 10,
                                       .height = 5.004,
                                       .title = "a < b",
                                       .description = "\"d\""});
  CHECK(svg ==
        "<svg viewBox=\"0 0 10 5\" role=\"img\" aria-label=\"a &lt; b\">\n<desc>&quot;d&quot;</desc>\n"
        "<text x=\"1\" y=\"2.5\" class=\"soft\">&lt;&amp;&gt;</text>\n</svg>\n");
}

TEST_CASE("numbers of equal precision") {
  CHECK(three_digits(0.48) == "0.480");
  CHECK(three_digits(27.41870) == "27.4");
  CHECK(three_digits(126.04) == "126");
  CHECK(three_digits(99.96) == "100");
  CHECK(three_digits(4.0253e-8) == "4.03e-08");
  CHECK(three_digits(17037816) == "1.70e+07");
  CHECK(three_digits(0) == "0");
  CHECK(three_digits(inf) == "inf");
  CHECK(three_digits(NAN).empty());
  CHECK(interval_text(0.5, 0.25, 0.75) == "0.500 [0.250, 0.750]");
  CHECK(interval_text(0.5, NAN, NAN) == "0.500");
}

TEST_CASE("a point has its marker and its interval; a gap breaks the line") {
  const std::string whole = svg_of(chart({{1, 1, 0.5, 2, "tip <1>"}, {10, 2, NAN, NAN, ""}, {100, 3, NAN, NAN, ""}}));
  CHECK(whole.find("<title>tip &lt;1&gt;</title>") != std::string::npos);
  const std::string before_end = whole.substr(0, whole.find("\" class=\"whisker\""));
  CHECK(count(before_end.substr(before_end.rfind("d=")), "M") == 3);  // the bar and its two ends are one path
  CHECK(count(whole, "<circle") == 4);                                // three points and the marker of the name
  CHECK(count(whole, "L") >= 2);
  const std::string broken = svg_of(chart({{1, 1, NAN, NAN, ""}, {10, NAN, NAN, NAN, ""}, {100, 3, NAN, NAN, ""}}));
  CHECK(count(broken, "<circle") == 3);
  const std::size_t path = broken.find("<path d=\"M");
  CHECK(broken.substr(path, broken.find("\" class=\"line\"") - path).find('L') == std::string::npos);
}

TEST_CASE("a line of many points has marks where a point has a bar") {
  std::vector<ChartPoint> points;
  for (int i = 1; i <= 40; ++i) points.push_back({1.0 + i * 0.1, 1, i <= 3 ? 0.5 : NAN, i <= 3 ? 2 : NAN, ""});
  const std::string svg = svg_of(chart(points));
  CHECK(count(svg, "class=\"whisker\"") == 3);
  CHECK(count(svg, "<circle") == 4);  // and the marker of the name
}

TEST_CASE("values outside an axis are triangles at its edge and listed at the name") {
  const std::string svg = svg_of(chart({{1, 0, NAN, NAN, ""}, {10, 270, NAN, NAN, ""}, {100, inf, NAN, NAN, ""}}));
  CHECK(svg.find("▲ 270 to inf") != std::string::npos);
  CHECK(svg.find("▼ 0<") != std::string::npos);
  CHECK(count(svg, "<polygon") == 3);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(count(svg, "inf") == 1);  // in the name only, never as a coordinate
}

TEST_CASE("colours of a heat map are logarithmic and clipped") {
  CHECK(heat_class(0.1, 0.1, 10) == '0');
  CHECK(heat_class(1, 0.1, 10) == '4');  // half way of nine
  CHECK(heat_class(10, 0.1, 10) == '8');
  CHECK(heat_class(1e9, 0.1, 10) == '8');
  CHECK(heat_class(inf, 0.1, 10) == '8');
  CHECK(heat_class(0, 0.1, 10) == '0');
  CHECK(heat_class(NAN, 0.1, 10) == 'x');
}

TEST_CASE("a heat map shows numbers in cells and tooltips, and why a number is missing") {
  const HeatMap map{.title = "t",
                    .description = "d",
                    .columns = {"0", "7"},
                    .rows = {{"m", "p=<1>", {0.5, NAN}, {"", "skipped: no queries"}}}};
  const std::string svg = svg_of(map);
  CHECK(svg.find(">0.500</text>") != std::string::npos);
  CHECK(svg.find("<title>m p=&lt;1&gt;, layer 0: 0.500</title>") != std::string::npos);
  CHECK(svg.find("<title>m p=&lt;1&gt;, layer 7: skipped: no queries</title>") != std::string::npos);
  CHECK(svg.find(">–</text>") != std::string::npos);
}

TEST_CASE("the reader's own methods are drawn above the others") {
  LineChart own = chart({{1, 1, NAN, NAN, ""}});
  own.lines.front().style = marks::own_style(0);
  own.lines.push_back({.name = "other", .points = {{1, 2, NAN, NAN, ""}}});
  const std::string svg = svg_of(own);
  CHECK(svg.find("<g class=\"k0\" data-m=\"other\">") < svg.find("<g class=\"own\" data-m=\"m a=1\">"));
}

TEST_CASE("styles of one colour differ in marker and dashes, and own ones from each other and from all others") {
  for (int style = 0; style < 35; ++style) {
    for (int other = style + 7; other < 35; other += 7) {
      CHECK(marks::colour(style) == marks::colour(other));
      CHECK(mark_of(style) != mark_of(other));
      CHECK(!std::ranges::equal(marks::dashes(style), marks::dashes(other)));
    }
  }
  for (int number = 0; number < 20; ++number) {
    const int own = marks::own_style(number);
    CHECK(marks::is_own(own));
    for (int style = 0; style < 35; ++style) {
      CHECK(marks::colour(own) != marks::colour(style));
      CHECK(mark_of(own) != mark_of(style));
    }
    for (int other = 0; other < number; ++other) {
      const bool same_colour = marks::colour(own) == marks::colour(marks::own_style(other));
      CHECK((!same_colour || mark_of(own) != mark_of(marks::own_style(other))));
      CHECK((number - other > 3 || !same_colour));
    }
  }
}

TEST_CASE("levels are lines across, lines of the crowd have no name, and connectors are level inside the plot") {
  LineChart levels = chart({{1, 1, NAN, NAN, ""}, {10, 2, NAN, NAN, ""}});
  levels.levels = {1, 1000};
  levels.lines.push_back({.name = "hidden", .role = LineRole::crowd, .points = {{1, 2, NAN, NAN, ""}}});
  const std::string svg = svg_of(levels);
  CHECK(count(svg, "class=\"level\"") == 1);  // 1000 is outside the axis
  CHECK(svg.find(">hidden</text>") == std::string::npos);
  const std::size_t end = svg.find("\" class=\"leader\""), begin = svg.rfind("d=\"M", end) + 4;
  double x = 0, y = 0, to_x = 0;  // H: at the same y
  REQUIRE(std::sscanf(svg.substr(begin, end - begin).c_str(), "%lf %lfH%lf", &x, &y, &to_x) == 3);
  CHECK(x < to_x);
}

TEST_CASE("dots are in rows from top to bottom, with whiskers, a legend of the groups, and triangles at the edge") {
  const DotPlot plot{.title = "t",
                     .description = "d",
                     .x = {Scale::log, 0.1, 1, {{0.5, "0.5"}}, "error"},
                     .rows = {{.name = "a", .group = "g", .value = 0.2, .lo = 0.15, .hi = 0.3, .text = "0.200"},
                              {.name = "b", .group = "g", .value = 7, .text = "7.00"},
                              {.name = "c", .group = "r", .grey = true, .value = 0.5, .text = "0.500"}}};
  const std::string svg = svg_of(plot);
  CHECK(count(svg, "class=\"whisker\"") == 1);
  CHECK(count(svg, ">g</text>") == 1);
  CHECK(count(svg, "<circle") == 2);   // of the legend and of a
  CHECK(count(svg, "<polygon") == 1);  // b
  CHECK(svg.find(">a</text>") < svg.find(">b</text>"));
  CHECK(svg.find(">b</text>") < svg.find(">c</text>"));
}

TEST_CASE("labels of ticks that would cover each other are left out; both ends of the lines have the others") {
  const std::string svg = svg_of(
      DotPlot{.x = {Scale::log, 0.1, 1, {{0.1, "0.1"}, {0.11, "0.11"}, {1, "1"}}, "error"}, .rows = {{.value = 0.2}}});
  CHECK(count(svg, ">0.1</text>") == 2);
  CHECK(count(svg, ">0.11</text>") == 0);
  CHECK(count(svg, ">1</text>") == 2);
}

TEST_CASE("values that do not say how large something is are hollow in a grey area, and what has none is at the edge") {
  LineChart vague = chart({{10, 0.5}, {20, 2, NAN, NAN, "", true}, {40, inf, NAN, NAN, "", true}});
  CHECK(count(svg_of(vague), "class=\"vague\"") == 0);
  for (const double from : {1., 0.01}) {
    vague.vague_from = from;
    CHECK(count(svg_of(vague), "class=\"vague\"") == 1);
  }
  CHECK(count(svg_of(vague), "class=\"open\"") == 1);
  CHECK(svg_of(vague).find(">▲ outside</text>") != std::string::npos);
  vague.vague_from = 20;  // above the axis
  CHECK(count(svg_of(vague), "class=\"vague\"") == 0);
  const DotPlot dots{.title = "t",
                     .x = {Scale::log, 0.1, 10, {}, "x"},
                     .vague_from = 1,
                     .rows = {{.name = "a", .value = 0.5}, {.name = "b", .hollow = true, .value = 2}}};
  CHECK(count(svg_of(dots), "class=\"vague\"") == 1);
  CHECK(count(svg_of(dots), "class=\"open\"") == 1);
}

TEST_CASE("a figure alone has its text below it, in lines of its width") {
  const Drawing plain = draw(chart({{10, 0.5}}));
  const Drawing with = with_text_below(plain,
                                       "tiny; t.h5, 5 texts, 1024 tokens; ~: not distinguishable from the best. "
                                       "Hollow: a prediction that does not say how large the damage is.");
  CHECK(with.width == plain.width);
  CHECK(with.height > plain.height + 30);  // two lines
  CHECK(svg_element(with).find(">tiny; t.h5, 5 texts, 1024 tokens;") != std::string::npos);
}
