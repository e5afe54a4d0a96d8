// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::compare;
using namespace kvbench::report;
using namespace kvbench::report_test;

TEST_CASE("checks: verdicts, ranges over subjects, findings separate from faults") {
  const std::string rows =
      "a.b,part one,theorem,t.h5,0,0,0,,holds,,2000000,,,2000000,9,0.5,0.75,1,10,0.1,1,fine,0.1,c,,\n"
      "a.b,part one,theorem,t.h5,0,0,1,,vacuous,,3e7,,,3e7,9,0.25,0.5,2,10,0.1,1,fine,0.1,c,,\n"
      "a.c,part two,claim,t.h5,0,1,0,,contradicted,,,,,,,0.5,,,,,0.001,the numbers,0.1,c,,\n"
      "a.c,part two,claim,t.h5,0,1,1,,supported,,,,,,,0.5,,,,,0.001,other numbers,0.1,c,,\n"
      "a.c,part five,claim,t.h5,0,1,2,,undecided,,,,,,,0.5,,,,,0.5,nearly,0.1,c,12,340\n"
      "a.d,part three,law,t.h5,0,1,0,,violated,,,,,,,0.5,,,,,0.002,broken law,0.1,c,,\n"
      "a.d,part four,law,,,,,,not applicable,,,,,,,,,,,,,too short,0.1,c,,\n";
  const Document document = report_of({parse_csv(check_header + rows, "c.csv")});
  const std::string text = markdown(document);
  CHECK(contains(text, "| a.b | 0 | 1 | 0 | 1 | 0 |"));
  CHECK(contains(text, "| a.c | 1 | **1** | 1 | 0 |"));
  CHECK(contains(
      text,
      "| a.b | part one | theorem | 2 | 1 holds, 1 vacuous | 0.250 … 0.500 | 0.500 … 0.750 | 2.00e+06 … 3.00e+07 "
      "| 9.00 | 0.100 | 3 of 20 | 1.00 |"));  // without the columns that no row has
  CHECK(text.find("Violated, so that the code or the paper is wrong: a.d.") < text.find("Each statement"));
  CHECK(contains(text, "Hold on every subject with a verdict: a.b."));
  CHECK(contains(text, "Claims of papers that these data contradict: a.c (contradicted in 1 of 3 tests)."));
  const std::size_t faults = text.find("Faults:"), findings = text.find("Findings:");
  REQUIRE(faults != std::string::npos);
  REQUIRE(findings > faults);
  CHECK(text.find("broken law") < findings);
  CHECK(text.find("the numbers") > findings);
  CHECK(contains(text, "| a.c | part five | 1 | 12 | 340 | 0.500 | nearly |"));
  CHECK(contains(text, "| a.d | part four | 1 | too short |"));
  CHECK(!contains(text, "other numbers"));
  CHECK_THROWS_AS(report_of({parse_csv(check_header + "a.b,p,claim,,,,,,violated,,,,,,,,,,,,,,,,,\n", "c.csv")}),
                  Error);
  CHECK_THROWS_AS(report_of({parse_csv(check_header + "a.b,p,law,,,,,,perhaps,,,,,,,,,,,,,,,,,\n", "c.csv")}), Error);
}

TEST_CASE("measures: the mean over heads with its extremes") {
  const std::string rows =
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,1,1.5,9,0.1,c\n,t.h5,abc,tiny,0,2,1,clusterability,keys,1,2.5,9,0.1,c\n"
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,2,1,9,0.1,c\n,t.h5,abc,tiny,0,2,1,clusterability,keys,2,,9,0.1,c\n";
  const std::string text = markdown(report_of({parse_csv(measure_header + rows, "m.csv")}));
  CHECK(contains(text, "| 2 | keys | 1 | 2 | 1.5 | 2.5 | 2 |"));
  CHECK(contains(text, "| 2 | keys | 2 | 1 | 1 | 1 | 1 |"));
}

TEST_CASE("a published number of a measure is shown next to the mean over heads") {
  const std::string rows =
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,16,1.5,9,0.1,c\n,t.h5,abc,tiny,0,3,1,clusterability,keys,16,2.5,9,0.1,"
      "c\n"
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,17,9,9,0.1,c\n";
  ReportOptions options;
  options.published = {{.claim = "keys cluster",
                        .paper = "0.5",
                        .metric = "value",
                        .rows = {{{"measure", "clusterability"}, {"array", "keys"}, {"x", "16"}},
                                 {{"measure", "clusterability"}, {"array", "values"}, {"x", "16"}}},
                        .why = "w"}};
  const std::string text = markdown(report_of({parse_csv(measure_header + rows, "m.csv")}, options));
  CHECK(contains(text, "| t.h5 | value | 2 (1.5 to 2.5 over 2 heads) |"));
  CHECK(contains(text,
                 "array values, x 16 |  | value | **no row of the results has array = 'values'; there is 'keys'** |"));
}

TEST_CASE("of the many values of a column a cell lists some") {
  std::vector<Line> rows;
  for (const char name : std::string("abcdefghij")) rows.push_back({.method = std::string(1, name)});
  ReportOptions options;
  options.published = {{.claim = "c", .paper = "1", .metric = "rel_err_mean", .rows = {{{"method", "quest"}}}}};
  CHECK(contains(markdown(report_of({replay_table(rows)}, options)),
                 "there is 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 2 more**"));
}

TEST_CASE("published numbers are shown next to the rows; layer is all unless it is named") {
  const CsvTable table =
      replay_table({{},
                    {.layer = "3", .error = "0.9,0.8,1"},
                    {.method = "cam", .status = "failed", .reason = "fault", .error = ",,", .recall = ""}});
  ReportOptions options;
  options.published = {
      {.claim = "sink errs by half",
       .paper = "0.44",
       .metric = "rel_err_mean",
       .rows = {{{"method", "sink"}}, {{"method", "sink"}, {"layer", "3"}}, {{"method", "cam"}}, {{"method", "quest"}}},
       .why = "another model"},
      {.claim = "it recalls little",
       .paper = "no number in the text",
       .metric = "recall_mean",
       .rows = {{{"method", "sink"}, {"params", ""}}},
       .why = "short"}};
  options.published[1].rows.push_back({{"array", "x"}});
  options.published[1].rows.push_back({{"method", "cam"}, {"layer", "3"}});
  const std::string text = markdown(report_of({table}, options));
  CHECK(contains(text, "| 0.44 | method sink | 25% | t.h5 | rel_err_mean | 0.500 [0.400, 0.600] |"));
  CHECK(contains(text, "| method sink, layer 3 | 25% | t.h5 | rel_err_mean | 0.900 [0.800, 1.00] |"));
  CHECK(contains(text, "| method cam | 25% | t.h5 | rel_err_mean | failed: fault |"));
  CHECK(contains(text,
                 "| method quest |  |  | rel_err_mean | **no row of the results has method = 'quest'; there is 'cam', "
                 "'sink'** |"));
  CHECK(contains(text, "**no row of the results has all of these**"));
  CHECK(contains(text, "**no row of the results has array = 'x'; there is no such column**"));
  CHECK(contains(text, "| no number in the text | method sink, params (none) | 25% | t.h5 | recall_mean | 0.300 |"));
  CHECK(contains(text, "No verdict: the sweep writes it beside its rows"));
  CHECK(text.find("sink errs by half") < text.find("Possible reasons for differences: another model."));
  CHECK(text.find("another model.") < text.find("it recalls little"));
  CHECK(contains(text, "Possible reasons for differences: short."));
  options.published[0].metric = "speed_mean";
  CHECK_THROWS_WITH_AS(report_of({table}, options),
                       "r.csv: lacks the column 'speed_mean', which a published number is compared with", Error);
}

// Means of 1.24 and 1.21 whose ratio over layers and texts is below 1: it is that of the geometric means.
TEST_CASE("a line has one kind of mean, that of its ratio") {
  Comparison over_texts;
  over_texts.a = "sink", over_texts.b = "cam", over_texts.budget_a = over_texts.budget_b = Budget::parse("25%");
  over_texts.outcome = Outcome::tied;
  over_texts.metric = replay::info_of(replay::Metric::rel_err);
  over_texts.test.mean_a = 1.24, over_texts.test.mean_b = 1.21;
  over_texts.over_places = 0.984, over_texts.places_a = 0.615, over_texts.places_b = 0.625;
  const std::string all = markdown({.title = "t", .blocks = comparison_blocks(std::vector{over_texts})});
  CHECK(contains(all, "| geometric mean a | geometric mean b | a / b |"));
  CHECK(contains(all, "| 0.615 | 0.625 | 0.984 |"));
  CHECK_FALSE(contains(all, "1.24"));

  Comparison over_blocks = over_texts;
  over_blocks.over_places = over_blocks.places_a = over_blocks.places_b = NAN;
  const std::string mixed = markdown({.title = "t", .blocks = comparison_blocks(std::vector{over_texts, over_blocks})});
  CHECK(contains(mixed, "| mean a | mean b | a / b |"));
  CHECK(contains(mixed, "| geometric 0.615 | geometric 0.625 | 0.984 |"));
  CHECK(contains(mixed, "| 1.24 | 1.21 | 1.02"));

  RelationResult result{.relation = "sink lower than cam", .comparison = over_texts, .verdict = Verdict::undecided};
  ClaimResult claim{.claim = {.text = "sink beats cam"}, .verdict = Verdict::undecided, .results = {result}};
  const CsvTable table = parse_csv(claims_table("csv", std::vector{claim}), "c.csv");
  const std::string page = markdown(report_of({table}));
  CHECK(contains(page, "geometric mean rel_err against budget"));
  CHECK(contains(page, "| 0.615 | 0.625 | 0.984 |"));
  CHECK_FALSE(contains(page, "1.24"));
}

TEST_CASE("a claim begins with its verdict, then its metric against the budget by layer, then its tests") {
  ClaimResult claim{.claim = {.text = "sink beats cam"}, .verdict = Verdict::contradicted};
  for (const std::int64_t layer : {0, 3}) {
    RelationResult result{
        .relation = "sink lower than cam[s=1], by layer", .p_value = 0.01, .verdict = Verdict::supported};
    Comparison& c = result.comparison;
    c.trace = std::string("t.h5"), c.prompt = std::string("0"), c.a = std::string("sink");
    c.b = std::string("cam[s=1]"), c.layer = layer;
    c.budget_a = c.budget_b = Budget::parse("25%");
    c.outcome = Outcome::tied;
    c.test.mean_a = 0.5, c.test.mean_b = 0.25, c.test.difference = 0.25, c.test.interval = {0.2, 0.3},
    c.test.blocks = 16;
    c.ratio_interval = {1.9, 2.1}, c.tested_over = "16 blocks of queries", c.p_adjusted = 0.02, c.seeds = 5;
    claim.results.push_back(result);
  }
  claim.results[1].verdict = Verdict::contradicted;
  const ClaimResult scores{.claim = {.text = "it solves tasks", .untestable = "no tasks here"}};
  const std::vector<ClaimResult> claims = {claim, scores};
  const CsvTable table = parse_csv(claims_table("csv", claims), "c.csv");
  CHECK(verdict_text(claims_of(table)) == verdict_text(claims));
  const std::string page = markdown(report_of({table}));
  CHECK(contains(page, "### contradicted: sink beats cam"));
  CHECK(contains(page, "sink lower than cam[s=1], by layer: 1 supported, 1 contradicted; ratio 2"));
  CHECK(contains(page, "| prompt 0, layer 3 | cam[s=1] | 25% | 0.250 |"));
  CHECK(contains(page, "| prompt 0, layer 3 | sink / cam[s=1] | 25% | 2.00 [1.90, 2.10] |"));
  CHECK(contains(
      page, "| prompt 0, layer 3, budget 25% | **contradicted** | 0.500 | 0.250 | 2.00 [1.90, 2.10] | 0.02 | 5 |"));
  CHECK(page.find("### contradicted") < page.find("mean rel_err against budget"));
  CHECK(page.find("mean rel_err against budget") < page.find("| relation |"));
  CHECK(contains(page, "### untestable: it solves tasks\n\nno tasks here"));
  CHECK(contains(html(report_of({table})), "<svg"));
}
