// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/replay/figures.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <support/growth.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::report;
using namespace kvbench::report_test;

TEST_CASE("the kind of a table comes from its header; an error names a missing column and its file") {
  CHECK(kind_of(replay_table({{}})) == TableKind::replay);
  CHECK(kind_of(parse_csv(check_header + std::string(25, ',') + "\n", "c.csv")) == TableKind::checks);
  CHECK(kind_of(parse_csv(measure_header + std::string(13, ',') + "\n", "m.csv")) == TableKind::measures);
  CHECK_THROWS_WITH_AS(kind_of(parse_csv("method,budget\nsink,25%\n", "r.csv")),
                       "r.csv: lacks the column 'trace', which kvbench replay writes", Error);
  CHECK_THROWS_WITH_AS(kind_of(parse_csv("claim,part\na,b\n", "c.csv")),
                       "c.csv: lacks the column 'kind', which kvbench validate writes", Error);
  CHECK_THROWS_AS(kind_of(parse_csv("x,y\n1,2\n", "o.csv")), Error);
}

TEST_CASE("one layer is one in words") {
  const Line whole{.method = "kivi4", .status = "skipped", .reason = "no"};
  Line layer = whole;
  layer.layer = "14";
  CHECK(contains(markdown(report_of({replay_table({whole, layer})})), ", 1 layer (14)"));
}

TEST_CASE("additional columns are accepted") {
  std::string csv = replay_header + text({});
  csv.insert(csv.find('\n'), ",new_column");
  csv.insert(csv.size() - 1, ",17");
  const std::vector<CsvTable> with = {parse_csv(csv, "r.csv")}, without = {replay_table({{}})};
  CHECK(contains(markdown(report_of(with)), "| sink | 0.500 |"));
  CHECK(headings(report_of(with)) == headings(report_of(without)));
}

TEST_CASE("the table of methods has error, interval and costs, and says how a row stands to the best") {
  const std::string text =
      markdown(report_of({replay_table({{.held = "12.5", .best = "sink", .tied = "1"},
                                        {.method = "h2o", .error = "0.6,0.5,0.7", .best = "sink", .tied = "1"},
                                        {.method = "cam", .error = "1,0.9,1.1", .best = "sink", .tied = "0"},
                                        {.method = "quest", .error = "2,1,3"},
                                        {.method = "random", .error = "0.7,0.6,0.8"}})}));
  CHECK(contains(text, " | times the best |\n"));
  CHECK(contains(text, "| sink | 0.500 | 0.400 to 0.600 | 0.250 | 0.100 | 0.300 | best |"));
  CHECK(contains(text, "| h2o | 0.600 | 0.500 to 0.700 | 0.200 | 0.100 | 0.300 | tied, 1.2 |"));
  CHECK(contains(text, "| 1.00 | 0.900 to 1.10 | 0.200 | 0.100 | 0.300 | 2 |"));
  CHECK(contains(text, "| not tested, 4 |"));
  CHECK(contains(text, "| random | 0.700 | 0.600 to 0.800 | 0.200 | 0.100 | 0.300 | reference |"));
}

TEST_CASE("a report opens with one answer per protocol and kind of budget, for the budget nearest to a quarter") {
  std::vector<Line> lines;
  for (const char* budget : {"12.5%", "50%", "20%mem", "5%mem"}) {
    lines.push_back({.budget = budget, .best = "sink", .tied = "1"});
    lines.push_back({.method = "h2o", .budget = budget, .error = "0.7,0.6,0.8", .best = "sink", .tied = "0"});
  }
  for (const char* layer : {"0", "4"}) lines.push_back({.layer = layer, .budget = "12.5%"});
  const Document document = report_of({replay_table(lines)});
  REQUIRE(document.answers.size() == 1);
  CHECK(document.answers[0].scope == "prefill on t.h5, 2 of 6 layers (0, 4)");
  CHECK(document.answers[0].sentences ==
        Texts{"At 12.5 % of the tokens, sink has the lowest error of the 2 methods run (0.5); the next is h2o with 1.4 "
              "times the error.",
              "At 20 % of the memory, sink has the lowest error of the 2 methods run (0.5); the next is h2o with 1.4 "
              "times the error."});
  const std::string page = html(document);
  CHECK(page.find("At 20 % of the memory") < page.find("<nav"));
  CHECK(contains(page, "At 50 % of the tokens"));  // in its section
}

TEST_CASE("the frontier holds the rows that no other row beats at the same cost, to within 5 %, or a lower one") {
  const std::vector<CsvTable> tables = {replay_table(
      {{.method = "h2o", .error = "0.5,,", .held = "10"},
       {.method = "cam", .error = "0.6,,", .held = "11"},
       {.method = "snapkv", .error = "0.2,,", .held = "20"},
       {.method = "chelsea", .error = "0.19,,", .held = "20.9"},  // beats snapkv with 4.5 % more bytes
       {.method = "quest", .error = "0.1,,", .held = "60"},
       {.method = "sink", .error = "0.1,,", .held = "61"},            // the same error with more bytes
       {.method = "subgen", .error = "0.05,0.01,0.09", .held = "1"},  // the interval is too wide for a mean
       {.method = "random", .error = "0.01,,", .held = "5"},          // a reference
       {.method = "mesh", .status = "failed", .error = ",,", .recall = ""}})};
  const auto found = sections(tables);
  const std::vector<Series> all = series_of(found[0].parts[0]);
  Texts methods;
  for (const ReplayRow* r : frontier_of(all, &ReplayRow::held)) methods.push_back(r->method);
  CHECK(methods == Texts{"h2o", "chelsea", "quest"});
  CHECK(frontier_of(all, &ReplayRow::read).size() == 2);  // all read the same: both lowest errors
}

TEST_CASE("a figure alone says of which texts it is, by the names that their trace has for them") {
  const auto alone = [](const Texts& names) {
    std::vector<Line> lines;
    for (const char* method : {"h2o", "sink"}) {
      if (names.size() > 1) lines.push_back({.prompt = "all", .method = method});
      for (std::size_t p = 0; p < names.size(); ++p)
        lines.push_back({.prompt = std::to_string(p), .method = method, .name = names[p]});
    }
    return drawings_of(report_of({replay_table(lines)})).front().alone;
  };
  CHECK(alone({"genesis", "code"}).starts_with("tiny; t.h5, all prompts, 2 texts (genesis, code), 100 tokens, "));
  CHECK(alone({"genesis"}).starts_with("tiny; t.h5, text genesis, 100 tokens, "));
  CHECK(alone({"genesis", ""}).starts_with("tiny; t.h5, all prompts, 2 texts, 100 tokens, "));  // one has no name
  CHECK(alone({""}).starts_with("tiny; t.h5, 100 tokens, "));
  CHECK(contains(alone(Texts{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}),
                 ", 10 texts (a, b, c, d, e, f, g, h and 2 more), "));
}

// h2o has the lowest error of all and of eviction, bsm that of merging. snapkv is tied with h2o, and not named.
TEST_CASE("of many methods the figure of cost names the lowest of each family, and no other that is tied with it") {
  std::vector<Line> lines;
  for (const char* budget : {"25%mem", "50%mem"}) {
    const auto add = [&](const char* method, const char* error, const char* tied) {
      lines.push_back({.method = method, .budget = budget, .error = error, .best = "h2o", .tied = tied});
    };
    add("h2o", "0.1,0.05,0.2", "1"), add("snapkv", "0.11,0.05,0.2", "1");
    add("bsm", "0.5,0.4,0.6", "0"), add("chelsea", "0.6,0.5,0.7", "0");
    for (const char* method : {"sink", "pyramidkv", "knorm", "keydiff", "curdkv", "lagkv", "tova", "triattention",
                               "expected-attention", "snapkv@kvpress", "h2o-global", "subgen-kcenter", "lagkv@kvpress"})
      add(method, "0.9,0.8,1", "0");
  }
  const std::vector<CsvTable> tables = {replay_table(lines)};
  const auto found = sections(tables);
  const ReplayPart& part = found[0].parts[0];
  const Figure figure = cost_figure(series_of(part), budgets_of(part), "");
  REQUIRE(figure.drawings.size() == 1);
  const std::string drawn = svg_element(figure.drawings[0]);
  for (const char* named : {">h2o<", ">bsm<"}) CHECK(contains(drawn, named));
  for (const char* method : {">snapkv<", ">chelsea<", ">sink<"}) CHECK_FALSE(contains(drawn, method));
}

TEST_CASE("a row that is not ok is shown with its reason") {
  const Document document = report_of({replay_table(
      {{},
       {.layer = "3", .method = "cam", .status = "skipped", .reason = "no <queries>", .error = ",,", .recall = ""}})});
  CHECK(contains(html(document), "<td>skipped</td><td class=\"p\">no &lt;queries&gt;</td>"));
  CHECK(contains(markdown(document), "| skipped | no &lt;queries> |"));
}

TEST_CASE("texts of the CSV are escaped everywhere") {
  const std::string page = html(report_of({replay_table(
      {{.method = "a<b>&'c", .params = "\"x=\"\"1\"\"\"", .budget = "10%"}, {.method = "a<b>&'c", .budget = "20%"}})}));
  CHECK(!contains(page, "a<b>"));
  CHECK(contains(page, "a&lt;b&gt;&amp;&#39;c"));
}

TEST_CASE("one section per run and protocol, whatever the traces and budgets") {
  const Document document = report_of({replay_table({{.run = "a"},
                                                     {.run = "b"},
                                                     {.run = "b", .budget = "25%mem", .trace = "u.h5"},
                                                     {.run = "b", .protocol = "decode"}})});
  CHECK(headings(document) ==
        Texts{"Run a: t.h5, prefill", "Run b: t.h5; u.h5, prefill", "Run b: t.h5, decode", "Inputs"});
  CHECK(contains(markdown(document), "| sink | u.h5 | 25%mem |"));
}

TEST_CASE("with several prompts the row over all prompts is shown; without it, one part per prompt") {
  const std::vector<CsvTable> with = {
      replay_table({{.prompt = "0"}, {.prompt = "1"}, {.prompt = "all", .error = "0.7,0.6,0.8"}})};
  const auto joined = sections(with);
  REQUIRE(joined.size() == 1);
  REQUIRE(joined[0].parts.size() == 1);
  REQUIRE(joined[0].parts[0].overall.size() == 1);
  CHECK(joined[0].parts[0].overall[0].error == 0.7);
  CHECK(joined[0].parts[0].finer == 2);
  CHECK(contains(markdown(report_of(with)), "| sink | 25% | 2 | 0.500 | 1.00 | 2 |"));  // over the two texts
  CHECK(contains(markdown(report_of(with)), "(too few texts for an interval)"));
  const std::vector<CsvTable> without = {replay_table({{.prompt = "0"}, {.prompt = "1"}})};
  REQUIRE(sections(without).size() == 1);
  CHECK(sections(without)[0].parts.size() == 2);
}

TEST_CASE("rows per head are a map of layers and heads, the mean over seeds; rows per query are counted") {
  const std::vector<CsvTable> tables = {replay_table({{},
                                                      {.layer = "3", .error = "0.25,,", .kv_head = "0", .head = "1"},
                                                      {.layer = "4", .error = "0.5,,", .kv_head = "0", .head = "1"}})};
  const auto found = sections(tables);
  CHECK(found[0].parts[0].overall.size() == 1);
  CHECK(found[0].parts[0].heads.size() == 2);
  const std::string page = html(report_of(tables));
  CHECK(contains(page, "<summary>Layers and heads of sink at 25%</summary>"));
  CHECK(contains(page, "<title>layer 3, head 1: 0.250</title>"));
}

TEST_CASE("files join: equal rows count once, and only rows with other figures are told apart by file") {
  const std::vector<CsvTable> same = {replay_table({{}, {.method = "h2o"}}, "a.csv"),
                                      replay_table({{}, {.method = "cam"}}, "b.csv")};
  CHECK(headings(report_of(same)).size() == 2);
  CHECK(sections(same)[0].parts[0].overall.size() == 3);
  const std::vector<CsvTable> other = {replay_table({{}, {.method = "h2o"}}, "a.csv"),
                                       replay_table({{.error = "0.3,0.2,0.4"}}, "b.csv")};
  const auto joined = sections(other);
  REQUIRE(joined.size() == 1);
  Texts params;
  for (const ReplayRow& r : joined[0].parts[0].overall) params.push_back(r.params);
  CHECK(params == Texts{"from a.csv", "", "from b.csv"});
  CHECK_THROWS_AS(report_of({replay_table({{}, {}})}), Error);
}

TEST_CASE("tests against the best row of a file count where it is the best of all files") {
  const std::vector<CsvTable> tables = {
      replay_table({{.best = "sink", .tied = "1"}, {.method = "h2o", .error = "0.6,,", .best = "sink", .tied = "1"}},
                   "a.csv"),
      replay_table({{.method = "cam", .error = "0.7,,", .best = "cam", .tied = "1"},
                    {.method = "mesh", .error = "0.8,,", .best = "cam", .tied = "0"}},
                   "b.csv")};
  const auto joined = sections(tables);
  std::vector<std::optional<bool>> tied;
  for (const ReplayRow& r : joined[0].parts[0].overall) tied.push_back(r.tied);
  CHECK(tied == std::vector<std::optional<bool>>{true, true, std::nullopt, std::nullopt});
  CHECK(report_of(tables).answers.at(0).sentences.at(0) ==
        "At 25 % of the tokens, this trace cannot tell which method has the lowest error: sink (0.5), h2o (0.6).");
  CHECK(report_of(tables).answers.at(0).sentences.at(1).ends_with("or are a part of a plan: cam (0.7), mesh (0.8)."));
}

TEST_CASE("ratios to a best row that is not shown are not those to the best of the rows that are") {
  std::string csv = replay_header;
  csv.insert(csv.find('\n'), ",ratio_best");
  for (const auto& [method, error, ratio] : {std::tuple("h2o", "0.1", 1), {"sink", "0.2", 2}, {"cam", "0.6", 6}}) {
    csv += text({.method = method, .error = fmt::format("{},,", error), .best = "h2o", .tied = ratio == 6 ? "0" : "1"});
    csv.insert(csv.size() - 1, fmt::format(",{}", ratio));
  }
  std::vector<CsvTable> tables = {parse_csv(csv, "r.csv")};
  keep_methods(tables, {"sink", "cam"});
  const Document document = report_of(tables);
  CHECK(document.answers.at(0).sentences.at(0) ==
        "At 25 % of the tokens, sink has the lowest error of the 2 methods run (0.2); the next is cam with 3 times the "
        "error.");
  CHECK(contains(html(document), "not tested, 3"));
}

TEST_CASE("invalid budgets and numbers are refused") {
  CHECK_THROWS_WITH_AS(report_of({replay_table({{.budget = "lots"}})}),
                       doctest::Contains("r.csv:2: column 'budget': budget 'lots' is not a number; write"), Error);
  CHECK_THROWS_AS(report_of({replay_table({{.error = "x,0.4,0.6"}})}), Error);
}

TEST_CASE("zero, infinite and empty errors give no invalid coordinates") {
  const std::string page = html(report_of({replay_table({{.budget = "10%", .error = "inf,0.1,inf"},
                                                         {.budget = "20%", .error = "0,0,0"},
                                                         {.budget = "30%", .error = ",,"},
                                                         {.budget = "40%"}})}));
  CHECK(!contains(page, "=\"inf"));
  CHECK(!contains(page, "nan"));
  CHECK(contains(page, "▲ inf"));
  CHECK(contains(page, "▼ 0"));
}

TEST_CASE("the same input gives the same bytes") {
  const auto page = [] { return html(report_of({replay_table({{}, {.method = "h2o"}, {.layer = "2"}})})); };
  CHECK(page() == page());
}

TEST_CASE("repeated cells of merged columns are shown once in HTML") {
  const DocTable table{
      .title = "t", .columns = {{"a"}, {"b"}}, .rows = {{"x", "1"}, {"x", "2"}, {"y", "3"}}, .merged = 1};
  const std::string page = html({.title = "t", .blocks = {table}});
  CHECK(contains(page,
                 "<tr><th scope=\"rowgroup\" rowspan=\"2\">x</th><td>1</td></tr>\n<tr><td>2</td></tr>\n<tr><th "
                 "scope=\"row\">y</th><td>3</td></tr>"));
}

TEST_CASE("figures show the best of many methods and some of many budgets, and say so; the table has all") {
  std::vector<Line> lines;
  for (int i = 0; i < 300; ++i)
    lines.push_back({.params = fmt::format("sinks={}", i), .error = fmt::format("{},,", 1 + i)});
  const std::string many = html(report_of({replay_table(lines)}));
  CHECK(contains(
      many, "Figures show 100 of 300 methods and parameters, those with the lowest errors. The tables have all rows."));
  CHECK(contains(many, "<svg"));
  const std::size_t table = many.find("Methods at 25 % of the tokens</p>");
  CHECK(contains(many.substr(table), "sinks=299"));
  CHECK(!contains(many.substr(0, table), "sinks=299"));
  CHECK(!contains(html(report_of({replay_table({lines.begin(), lines.begin() + 100})})), "Figures show"));
  lines.clear();
  for (int i = 1; i <= 40; ++i) {
    for (const char* layer : {"all", "0", "1"})
      lines.push_back({.layer = layer, .budget = fmt::format("{}%", i), .error = "1,,"});
  }
  const std::string budgets = html(report_of({replay_table(lines)}));
  CHECK(contains(budgets, "Figures and answers show 12 of 40 budgets."));
  CHECK(contains(budgets, "Error by layer: budget 1%"));
  CHECK(!contains(budgets, "Error by layer: budget 2%"));
}

TEST_CASE("the time of a report is linear in the number of methods and budgets") {
  CHECK(testing::grows_linearly(
      [](int count) {
        std::vector<Line> lines;
        for (const char* prompt : {"0", "1", "all"}) {
          for (int i = 0; i < count; ++i) {
            const int error = 1 + i * 7919 % count;
            lines.push_back({.prompt = prompt,
                             .params = fmt::format("sinks={}", i),
                             .error = fmt::format("{},,", error),
                             .held = std::to_string(error)});
          }
        }
        report_of({replay_table(lines)});
      },
      500));
  CHECK(testing::grows_linearly(
      [](int count) {
        std::vector<Line> lines;
        for (const char* layer : {"all", "0", "1"}) {
          for (int i = 1; i <= count; ++i)
            lines.push_back({.layer = layer, .budget = std::to_string(i), .error = "1,,"});
        }
        report_of({replay_table(lines)});
      },
      500));
  CHECK(testing::grows_linearly(
      [](int count) {
        std::vector<Line> lines;
        for (int i = 0; i < count; ++i) lines.push_back({.run = std::to_string(i), .error = "1,,"});
        sections({replay_table(lines)});
      },
      500));
}
