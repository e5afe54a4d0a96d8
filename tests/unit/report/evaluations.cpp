// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/answer.hpp>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/eval/sections.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/report.hpp>
#include <unit/report/eval_lines.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::replay;
using namespace kvbench::report;
using namespace kvbench::report_test;

TEST_CASE("the CSV of an evaluation reads back; its kind comes from the header") {
  const CsvTable table = csv_of_lines({{}});
  CHECK(kind_of(table) == TableKind::evaluations);
  CHECK(table.text(table.rows[0], "total_bytes") == "25");
  CHECK(table.text(table.rows[0], "kl_mean_hi") == "1.1");
  CHECK(table.text(table.rows[0], "match").empty());
  CHECK(table.text(table.rows[0], "nll_verdict") == "worse");
  CHECK(table.text(table.rows[0], "layer") == "all");
  CHECK_FALSE(parse_csv(csv_of(eval_columns(), std::vector{made_record({})}, false), "e.csv").has("pass_s"));
  CHECK_THROWS_WITH_AS(kind_of(parse_csv("kl_mean,method\n1,a\n", "e.csv")),
                       "e.csv: lacks the column 'model', which kveval writes", Error);
}

TEST_CASE("a report of a replay with predictions and of an evaluation draws one against the other") {
  std::string csv = replay_header;
  csv.pop_back();
  csv += ",kl_predicted\n";
  const auto add = [&](const char* method, const char* budget, const char* kl) {
    std::string row = text({.method = method, .budget = budget});
    row.pop_back();
    csv += row + "," + kl + "\n";
  };
  // ratios .5 and .8 of small KL, whose median is .65, and 3 of a large one
  add("sink", "25%mem", "0.02"), add("h2o", "25%mem", "0.04"), add("snapkv", "25%mem", "3"), add("cam", "50%mem", "1");
  const CsvTable measured =
      csv_of_lines({{.kl = 0.04}, {.method = "h2o", .kl = 0.05}, {.method = "snapkv", .kl = 1}, {.method = "cam"}});
  const Document document = make_report(std::vector{parse_csv(csv, "r.csv"), measured}, {});
  const std::vector<std::string> titles = headings(document);
  CHECK(std::ranges::count(titles, "Predicted from t.h5, measured on book.txt") == 1);
  const std::string page = html(document);
  CHECK(contains(page, "predicted / measured is 0.650 in the median of 2 configurations"));
  // without a configuration that has both there is nothing to draw
  CHECK_FALSE(contains(markdown_of({parse_csv(csv, "r.csv"), csv_of_lines({{.method = "cam"}})}), "Predicted from"));
}

TEST_CASE("rows of an evaluation read back as the same rows") {
  EvalRecord broken = made_record({});
  broken.status = Status::failed, broken.reason = "it cannot", broken.injection = {.mode = Inject::one, .layer = 4};
  const std::vector<EvalRecord> rows = {made_record({}), broken, made_record({.layer = 3})};
  const std::string csv = csv_of(eval_columns(), rows);
  const CsvTable table = parse_csv(csv, "e.csv");
  const RowReader<EvalRecord> read(table, eval_columns());
  std::vector<EvalRecord> back;
  for (const CsvRow& line : table.rows) back.push_back(read(line));
  CHECK(csv_of(eval_columns(), back) == csv);
}

TEST_CASE("rows that are not ok, and rows per layer, have no figures of the output") {
  EvalRecord broken = made_record({});
  broken.status = Status::skipped, broken.reason = "lacks column sums";
  const CsvTable table = parse_csv(csv_of(eval_columns(), std::vector{broken, made_record({.layer = 3})}), "e.csv");
  CHECK(table.text(table.rows[0], "kl_mean").empty());
  CHECK(table.text(table.rows[0], "rel_err_mean").empty());
  CHECK(table.text(table.rows[1], "kl_mean").empty());
  CHECK(table.text(table.rows[1], "rel_err_mean") == "0.5");
  CHECK(contains(markdown_of({table}), "lacks column sums"));
}

TEST_CASE("several files join; a row that a file has twice is an error") {
  std::vector<EvalLine> lines = three_methods();
  const std::vector<CsvTable> tables = {csv_of_lines(lines), csv_of_lines(lines, "f.csv")};
  CHECK(contains(make_report(tables, {}).answers[0].sentences[1], "3 pairs of methods"));
  lines.push_back(lines.front());
  CHECK_THROWS_WITH_AS(make_report(std::vector{csv_of_lines(lines)}, {}),
                       "e.csv:11: the row of sink  at 25%mem appears twice", Error);
}

TEST_CASE("tables for terminals and Markdown: by task and budget, in ascending order of KL") {
  std::vector<EvalRecord> records;
  for (const EvalLine& line : three_methods()) records.push_back(made_record(line));
  records.push_back(made_record({.method = "cam"}));
  records.back().status = Status::failed, records.back().reason = "no memory";
  const Block table = overall_table(records);
  const std::string text = terminal_text({&table, 1});
  CHECK(text.find("snapkv") < text.find("h2o"));
  CHECK(text.find("h2o") < text.find("sink"));
  CHECK(contains(text, "failed: no memory"));
  CHECK(contains(markdown({&table, 1}), "| snapkv | all | 25%mem | 0.25 | 1 |"));
  CHECK_FALSE(contains(text, "text-0"));
}

TEST_CASE("evaluations that differ in settings or documents have sections of their own, which say in what") {
  std::vector<EvalLine> other = three_methods();
  const auto headings_of = [&] {
    const std::vector<CsvTable> tables = {csv_of_lines(three_methods()), csv_of_lines(other, "f.csv")};
    const Document document = make_report(tables, {});
    REQUIRE(document.answers.size() == 2);
    return document.answers[1].scope;
  };
  for (EvalLine& line : other) line.settings.layers = "0-2", line.compressed_layers = 3;
  CHECK(contains(headings_of(), ", layers 0-2 of 30"));
  other = three_methods();
  for (EvalLine& line : other) line.settings.weights = "file";
  CHECK(contains(headings_of(), "weights file"));
  other = three_methods();
  for (EvalLine& line : other) line.settings.protect = "4,4";
  CHECK(contains(headings_of(), "protected tokens 4,4"));
  other = three_methods();
  for (EvalLine& line : other) line.documents_sha256 = "other";
  CHECK(contains(headings_of(), "documents: text other"));
  const std::string text = markdown_of({csv_of_lines(three_methods())});
  CHECK(contains(text, "in all 30 layers of the running model. Every figure"));
  for (EvalLine& line : other) line.settings.layers = "3", line.compressed_layers = 1;
  CHECK(contains(markdown_of({csv_of_lines(other)}), "in layer 3 of 30 of the running model; the others keep"));
}

TEST_CASE("free answers are drawn where documents were continued") {
  for (const double alike : {double{NAN}, 0.25}) {
    EvalRecord row = made_record({});
    row.of(damage("alike_64")).mean = alike;
    const Document document =
        make_report(std::vector{parse_csv(csv_of(eval_columns(), std::vector{row}), "e.csv")}, {});
    CHECK(contains(html(document), "share of the first 64 tokens alike") == (alike == 0.25));
  }
}

TEST_CASE("a page says a sentence once, and has no fold with nothing in it") {
  std::vector<CsvTable> tables;
  for (const char* text : {"a.txt", "b.txt"}) {
    std::vector<EvalLine> lines;
    for (const char* method : {"sink", "h2o"})
      lines.push_back({.method = method, .text = text, .kl = method[0] == 's' ? 2. : 1., .error = NAN, .recall = NAN});
    tables.push_back(csv_of_lines(lines, text));
  }
  const std::string page = markdown_of(tables);
  const std::size_t once = page.find("h2o has the lowest KL on 2 of 2 texts");
  REQUIRE(once != page.npos);
  CHECK(page.find("h2o has the lowest KL on 2 of 2 texts", once + 1) == page.npos);
  CHECK(contains(page, "## m.gguf on a.txt, b.txt together"));
  CHECK(!contains(page, "Which attention error predicts the damage, and notes"));
}

TEST_CASE("a page says the caption of several figures once") {
  std::vector<EvalLine> lines = three_methods();
  for (EvalLine line : three_methods()) line.budget = "50%mem", lines.push_back(line);
  const std::vector<CsvTable> tables = {csv_of_lines(lines)};
  const Document document = make_report(tables, {});
  const std::string caption = "Means over documents and seeds", page = html(document);
  const std::size_t once = page.find(caption);
  REQUIRE(once != page.npos);
  CHECK(page.find(caption, once + 1) == page.npos);
  CHECK(std::ranges::any_of(document.blocks, [](const Block& block) {
    const auto* const figure = std::get_if<Figure>(&block);
    return figure != nullptr && figure->caption.empty();
  }));
}

TEST_CASE("configurations that compressed fewer layers than the others are listed, not ranked") {
  std::vector<EvalLine> lines = three_methods();
  lines.push_back({.method = "infinigen", .kl = 0.01, .compressed_layers = 29});
  const std::vector<CsvTable> tables = {csv_of_lines(lines)};
  const std::vector<const CsvTable*> pointers = {&tables[0]};
  const std::vector<EvalSection> sections = eval_sections(pointers);
  REQUIRE(sections.size() == 1);
  CHECK(sections[0].find("text", "all", "all").size() == 3);
  CHECK(sections[0].fewer_layers.size() == 1);
  CHECK(contains(markdown_of(tables), "Not compared: configurations that compressed fewer layers"));
}

TEST_CASE("a report refuses a row with status ok that lacks a number") {
  std::vector<EvalLine> lines = three_methods();
  lines[1].kl = NAN;
  CHECK_THROWS_WITH_AS(make_report(std::vector{csv_of_lines(lines)}, {}),
                       "e.csv:3: column 'kl_mean' holds '', and a row with status ok needs a number there", Error);
}
