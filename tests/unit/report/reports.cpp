// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/claim_table.hpp>
#include <kvbench/report/report_input.hpp>

using namespace kvbench;

namespace {

const std::string replay_header =
    "run,trace,sha256,model,prompt,layer,kv_head,head,query,protocol,device,method,params,budget,status,reason,query_rows,"
    "context_tokens,budget_tokens,total_bytes,full_bytes,rel_err_mean,rel_err_lo,rel_err_hi,recall_mean,version,commit,isa\n";

struct Line {
  std::string run = "", prompt = "0", layer = "all", method = "sink", params = "", budget = "25%", status = "ok", reason = "";
  std::string error = "0.5,0.4,0.6", recall = "0.3", protocol = "prefill", kv_head = "all", trace = "t.h5";
};

std::string text(const Line& l) {
  const std::string bytes = l.status == "ok" ? "100,40,10,50" : "100,,,";
  return fmt::format("{},{},abc,tiny,{},{},{},all,all,{},cpu,{},{},{},{},{},8,{},{},{},0.1,c0ffee,avx2\n", l.run, l.trace,
                     l.prompt, l.layer, l.kv_head, l.protocol, l.method, l.params, l.budget, l.status, l.reason, bytes, l.error,
                     l.recall);
}

CsvTable replay(const std::vector<Line>& lines, const std::string& file = "r.csv") {
  std::string csv = replay_header;
  for (const Line& l : lines) csv += text(l);
  return parse_csv(csv, file);
}

Document report(const std::vector<CsvTable>& tables, const ReportOptions& options = {}) { return make_report(tables, options); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t headings(const Document& document) {
  std::size_t n = 0;
  for (const Block& block : document.blocks) n += std::holds_alternative<Heading>(block);
  return n;
}

const std::string check_header =
    "claim,part,kind,source,prompt,layer,kv_head,params,verdict,assumptions_text,literal,tight,data,bound,trivial,measured,"
    "measured_q99,failures,trials,allowed,p_adjusted,text,version,commit\n";

const std::string measure_header = "run,trace,sha256,model,prompt,layer,kv_head,measure,array,x,value,count,version,commit\n";

}  // namespace

TEST_CASE("the kind of a table comes from its header; an error names a missing column and its file") {
  CHECK(kind_of(replay({{}})) == TableKind::replay);
  CHECK(kind_of(parse_csv(check_header + std::string(23, ',') + "\n", "c.csv")) == TableKind::checks);
  CHECK(kind_of(parse_csv(measure_header + std::string(13, ',') + "\n", "m.csv")) == TableKind::measures);
  CHECK_THROWS_WITH_AS(kind_of(parse_csv("method,budget\nsink,25%\n", "r.csv")),
                       "r.csv: lacks the column 'trace', which kvbench replay writes", Error);
  CHECK_THROWS_WITH_AS(kind_of(parse_csv("claim,part\na,b\n", "c.csv")),
                       "c.csv: lacks the column 'kind', which kvbench validate writes", Error);
  CHECK_THROWS_AS(kind_of(parse_csv("x,y\n1,2\n", "o.csv")), Error);
}

TEST_CASE("additional columns are accepted") {
  std::string csv = replay_header + text({});
  csv.insert(csv.find('\n'), ",new_column");
  csv.insert(csv.size() - 1, ",17");
  const std::vector<CsvTable> tables = {parse_csv(csv, "r.csv")};
  CHECK(has(html(report(tables)), "<th scope=\"col\" class=\"n\">new_column</th>"));  // in the table of all columns
}

TEST_CASE("the table of errors has the mean, the interval and the row") {
  const std::string page = html(report({replay({{}})}));
  CHECK(has(page, "<tr><th scope=\"row\">sink</th><td>eviction</td><td class=\"n\">0.500 [0.400, 0.600]</td></tr>"));
  CHECK(has(page, "<td class=\"n\">0.4</td>"));  // the text of the CSV, unchanged
}

TEST_CASE("a row that is not ok is shown with its reason") {
  const Document document = report({replay(
      {{}, {.layer = "3", .method = "cam", .status = "skipped", .reason = "no <queries>", .error = ",,", .recall = ""}})});
  CHECK(has(html(document), "<td>skipped</td><td class=\"p\">no &lt;queries&gt;</td>"));
  CHECK(has(markdown(document), "| skipped | no &lt;queries> |"));
}

TEST_CASE("texts of the CSV are escaped everywhere") {
  const std::string page = html(report(
      {replay({{.method = "a<b>&'c", .params = "\"x=\"\"1\"\"\"", .budget = "10%"}, {.method = "a<b>&'c", .budget = "20%"}})}));
  CHECK(!has(page, "a<b>"));
  CHECK(has(page, "a&lt;b&gt;&amp;&#39;c"));
}

TEST_CASE("one section per run, trace and protocol") {
  CHECK(headings(report(
            {replay({{.run = "a"}, {.run = "b"}, {.run = "b", .trace = "u.h5"}, {.run = "b", .protocol = "decode"}})})) == 5);
}

TEST_CASE("budgets that limit a cost have sections of their own") {
  const Document document =
      report({replay({{.budget = "25%"}, {.budget = "25%mem"}, {.budget = "12.5%mem"}, {.budget = "25%read"}})});
  CHECK(has(html(document), "at equal memory</h2>"));
  CHECK(has(html(document), "at equal bytes read</h2>"));
  CHECK(headings(document) == headings(report({replay({{.budget = "25%"}})})) + 2);
}

TEST_CASE("with several prompts the row over all prompts is shown; without it, one section per prompt") {
  const std::vector<ReplaySection> with = [] {
    static const CsvTable table = replay({{.prompt = "0"}, {.prompt = "1"}, {.prompt = "all", .error = "0.7,0.6,0.8"}});
    const CsvTable* tables[] = {&table};
    return replay_sections(tables);
  }();
  REQUIRE(with.size() == 1);
  REQUIRE(with[0].overall.size() == 1);
  CHECK(with[0].overall[0].error == 0.7);
  CHECK(with[0].finer == 2);
  CHECK(headings(report({replay({{.prompt = "0"}, {.prompt = "1"}})})) == 3);
}

TEST_CASE("rows per head are counted, not drawn") {
  static const CsvTable table = replay({{}, {.layer = "0", .kv_head = "1"}});
  const CsvTable* tables[] = {&table};
  const auto sections = replay_sections(tables);
  CHECK(sections[0].overall.size() == 1);
  CHECK(sections[0].layers.empty());
  CHECK(sections[0].finer == 1);
}

TEST_CASE("files with the same configuration get separate sections, files with different methods share one") {
  CHECK(headings(report({replay({{}}, "a.csv"), replay({{.method = "h2o"}}, "b.csv")})) == 2);
  const Document apart = report({replay({{}}, "a.csv"), replay({{}}, "b.csv")});
  CHECK(headings(apart) == 3);
  CHECK(has(html(apart), "Replay of a.csv: t.h5, prefill"));
  CHECK_THROWS_AS(report({replay({{}, {}})}), Error);
}

TEST_CASE("invalid budgets and numbers are refused") {
  CHECK_THROWS_WITH_AS(report({replay({{.budget = "lots"}})}),
                       doctest::Contains("r.csv:2: column 'budget': budget 'lots' is not a number; write"), Error);
  CHECK_THROWS_AS(report({replay({{.error = "x,0.4,0.6"}})}), Error);
}

TEST_CASE("zero, infinite and empty errors give no invalid coordinates") {
  const std::string page = html(report({replay({{.budget = "10%", .error = "inf,0.1,inf"},
                                                {.budget = "20%", .error = "0,0,0"},
                                                {.budget = "30%", .error = ",,"},
                                                {.budget = "40%"}})}));
  CHECK(!has(page, "=\"inf"));
  CHECK(!has(page, "nan"));
  CHECK(has(page, "Values outside the axis, drawn as triangles at its edge: sink (0 to inf)."));
}

TEST_CASE("many methods: one drawing per kind; few: one drawing") {
  const std::vector<std::string> names = {"sink", "h2o", "snapkv", "uniform", "subgen", "cam", "chelsea", "quest", "clusterkv"};
  std::vector<Line> lines;
  for (const std::string& name : names) {
    for (const char* budget : {"10%", "20%"}) lines.push_back({.method = name, .budget = budget});
  }
  const auto drawings = [](const Document& document) {
    for (const Block& block : document.blocks) {
      if (const auto* figure = std::get_if<Figure>(&block)) return figure->drawings.size();
    }
    return std::size_t{0};
  };
  CHECK(drawings(report({replay(lines)})) == 4);  // eviction, sampling, merging, retrieval
  lines.resize(16);
  CHECK(drawings(report({replay(lines)})) == 3);  // one per curve
}

TEST_CASE("the same input gives the same bytes") {
  const auto page = [] { return html(report({replay({{}, {.method = "h2o"}, {.layer = "2"}})})); };
  CHECK(page() == page());
}

TEST_CASE("checks: verdicts, ranges over subjects, findings separate from faults") {
  const std::string rows =
      "a.b,part one,theorem,t.h5,0,0,0,,consistent,,2000000,,,2000000,9,0.5,0.75,1,10,0.1,1,fine,0.1,c\n"
      "a.b,part one,theorem,t.h5,0,0,1,,vacuous,,3e7,,,3e7,9,0.25,0.5,2,10,0.1,1,fine,0.1,c\n"
      "a.c,part two,claim,t.h5,0,1,0,,contradicted,,,,,,,0.5,,,,,0.001,the numbers,0.1,c\n"
      "a.c,part two,claim,t.h5,0,1,1,,supported,,,,,,,0.5,,,,,0.001,other numbers,0.1,c\n"
      "a.d,part three,law,t.h5,0,1,0,,violated,,,,,,,0.5,,,,,0.002,broken law,0.1,c\n"
      "a.d,part four,law,,,,,,not applicable,,,,,,,,,,,,,too short,0.1,c\n";
  const Document document = report({parse_csv(check_header + rows, "c.csv")});
  const std::string text = markdown(document);
  CHECK(has(text, "| a.b | 1 | 0 | 1 | 0 |"));
  CHECK(has(text, "| a.c | 1 | **1** | 0 | 0 |"));
  CHECK(has(text,
            "| a.b | part one | theorem | 2 | 1 consistent, 1 vacuous | 0.250 … 0.500 | 0.500 … 0.750 | 2.00e+06 … 3.00e+07 |  "
            "|  | 9.00 | 0.100 | 3 of 20 | 1.00 |"));
  const std::size_t faults = text.find("Faults:"), findings = text.find("Findings:");
  REQUIRE(faults != std::string::npos);
  REQUIRE(findings > faults);
  CHECK(text.find("broken law") < findings);
  CHECK(text.find("the numbers") > findings);
  CHECK(has(text, "| a.d | part four | 1 | too short |"));
  CHECK(!has(text, "other numbers"));
  CHECK_THROWS_AS(report({parse_csv(check_header + "a.b,p,claim,,,,,,violated,,,,,,,,,,,,,,,\n", "c.csv")}), Error);
  CHECK_THROWS_AS(report({parse_csv(check_header + "a.b,p,law,,,,,,perhaps,,,,,,,,,,,,,,,\n", "c.csv")}), Error);
}

TEST_CASE("measures: the mean over heads with its extremes") {
  const std::string rows =
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,1,1.5,9,0.1,c\n,t.h5,abc,tiny,0,2,1,clusterability,keys,1,2.5,9,0.1,c\n"
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,2,1,9,0.1,c\n,t.h5,abc,tiny,0,2,1,clusterability,keys,2,,9,0.1,c\n";
  const std::string text = markdown(report({parse_csv(measure_header + rows, "m.csv")}));
  CHECK(has(text, "| 2 | keys | 1 | 2 | 1.5 | 2.5 | 2 |"));
  CHECK(has(text, "| 2 | keys | 2 | 1 | 1 | 1 | 1 |"));
}

TEST_CASE("a published number of a measure is shown next to the mean over heads") {
  const std::string rows =
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,16,1.5,9,0.1,c\n,t.h5,abc,tiny,0,3,1,clusterability,keys,16,2.5,9,0.1,c\n"
      ",t.h5,abc,tiny,0,2,0,clusterability,keys,17,9,9,0.1,c\n";
  ReportOptions options;
  options.published = {{.claim = "keys cluster",
                        .paper = "0.5",
                        .metric = "value",
                        .rows = {{{"measure", "clusterability"}, {"array", "keys"}, {"x", "16"}},
                                 {{"measure", "clusterability"}, {"array", "values"}, {"x", "16"}}},
                        .why = "w"}};
  const std::string text = markdown(report({parse_csv(measure_header + rows, "m.csv")}, options));
  CHECK(has(text, "| t.h5 | value | 2 (1.5 to 2.5 over 2 heads) |"));
  CHECK(has(text, "array values, x 16 |  | value | **no such row** |"));
}

TEST_CASE("published numbers are shown next to the rows; layer is all unless it is named") {
  const CsvTable table = replay({{},
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
  const std::string text = markdown(report({table}, options));
  CHECK(has(text, "| 0.44 | method sink | 25% | t.h5 | rel_err_mean | 0.500 [0.400, 0.600] |"));
  CHECK(has(text, "| method sink, layer 3 | 25% | t.h5 | rel_err_mean | 0.900 [0.800, 1.00] |"));
  CHECK(has(text, "| method cam | 25% | t.h5 | rel_err_mean | failed: fault |"));
  CHECK(has(text, "| method quest |  |  | rel_err_mean | **no such row** |"));
  CHECK(has(text, "| no number in the text | method sink, params (none) | 25% | t.h5 | recall_mean | 0.300 |"));
  CHECK(has(text, "No verdict: the sweep writes it beside its rows"));
  CHECK(text.find("sink errs by half") < text.find("Possible reasons for differences: another model."));
  CHECK(text.find("another model.") < text.find("it recalls little"));
  CHECK(has(text, "Possible reasons for differences: short."));
  options.published[0].metric = "speed_mean";
  CHECK_THROWS_WITH_AS(report({table}, options),
                       "r.csv: lacks the column 'speed_mean', which a published number is compared with", Error);
}

TEST_CASE("a claim begins with its verdict, then its metric against the budget by layer, then its tests") {
  ClaimResult claim{.claim = {.text = "sink beats cam"}, .verdict = Verdict::contradicted, .results = {}};
  for (const std::int64_t layer : {0, 3}) {
    RelationResult result{
        .relation = "sink lower than cam[s=1], by layer", .comparison = {}, .p_value = 0.01, .verdict = Verdict::supported};
    Comparison& c = result.comparison;
    c.trace = "t.h5", c.prompt = "0", c.layer = layer, c.a = "sink", c.b = "cam[s=1]", c.budget_a = c.budget_b = "25%";
    c.outcome = Outcome::tied;
    c.test.mean_a = 0.5, c.test.mean_b = 0.25, c.test.difference = 0.25, c.test.interval = {0.2, 0.3}, c.test.blocks = 16;
    c.ratio_interval = {1.9, 2.1}, c.p_adjusted = 0.02, c.seeds = 5;
    claim.results.push_back(result);
  }
  claim.results[1].verdict = Verdict::contradicted;
  const ClaimResult scores{.claim = {.text = "it solves tasks", .untestable = "no tasks here"}, .results = {}};
  const std::vector<ClaimResult> claims = {claim, scores};
  const CsvTable table = parse_csv(claims_csv(claims), "c.csv");
  CHECK(claims_text(claims_of(table)) == claims_text(claims));
  const std::string page = markdown(report({table}));
  CHECK(has(page, "### contradicted: sink beats cam"));
  CHECK(has(page, "sink lower than cam[s=1], by layer: 1 supported, 1 contradicted; ratio 2"));
  CHECK(has(page, "| prompt 0, layer 3 | cam[s=1] | 25% | 0.250 |"));
  CHECK(has(page, "| prompt 0, layer 3 | sink / cam[s=1] | 25% | 2.00 [1.90, 2.10] |"));
  CHECK(has(page,
            "| prompt 0, layer 3, budget 25% | **contradicted** | 0.500 | 0.250 | 2.00 [1.90, 2.10] | 0.250 [0.200, 0.300] | "
            "0.01 | 0.02 | 16 | 5 |"));
  CHECK(page.find("### contradicted") < page.find("mean rel_err against budget"));
  CHECK(page.find("mean rel_err against budget") < page.find("| relation |"));
  CHECK(has(page, "### untestable: it solves tasks\n\nno tasks here"));
  CHECK(has(html(report({table})), "<svg"));
}

TEST_CASE("repeated cells of merged columns are shown once in HTML") {
  const DocTable table{.title = "t", .columns = {{"a"}, {"b"}}, .rows = {{"x", "1"}, {"x", "2"}, {"y", "3"}}, .merged = 1};
  const std::string page = html({.title = "t", .description = "", .made_by = "", .blocks = {table}});
  CHECK(has(page,
            "<tr><th scope=\"rowgroup\" rowspan=\"2\">x</th><td>1</td></tr>\n<tr><td>2</td></tr>\n<tr><th "
            "scope=\"row\">y</th><td>3</td></tr>"));
}
