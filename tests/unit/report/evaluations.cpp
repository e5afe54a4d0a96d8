// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/table.hpp>

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
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::replay;
using namespace kvbench::report;

namespace {

const EvalSettings all_layers{.layers = "0-29",
                              .model_layers = 30,
                              .weights = "f32",
                              .kv_dtype = "f16",
                              .protect = "0,0",
                              .decoded = "method",
                              .document_seed = 0};

struct EvalLine {
  const char *method = "sink", *budget = "25%mem", *document = "all", *task = "text", *text = "book.txt";
  double kl = 1, error = 0.5, recall = 0.5;
  Injection injection = {};
  std::optional<std::int64_t> layer = {};
  Index documents = 2;
  EvalSettings settings = all_layers;
  Index compressed_layers = 30;
  const char* documents_sha256 = "d1d2";
};

EvalRecord made_record(const EvalLine& line) {
  EvalRecord r;
  r.model = "m.gguf", r.sha256 = "abc", r.text = line.text, r.task = line.task, r.document = line.document;
  r.document_sha256 = r.document == "all" ? "" : r.document, r.documents_sha256 = line.documents_sha256;
  r.settings = line.settings, r.compressed_layers = line.compressed_layers;
  r.context_tokens = 4096, r.device = "cpu", r.isa = "avx2";
  r.injection = line.injection, r.layer = line.layer;
  r.method = line.method, r.budget = Budget::parse(line.budget);
  r.documents = line.documents, r.seeds = 1, r.tokens = 100;
  r.bytes = {.kv = 20, .meta = 5, .full = 100};
  r.of(damage("kl_mean")) = {line.kl, 0.9 * line.kl, 1.1 * line.kl};
  r.of(damage("nll_diff")) = {line.kl / 2, 0, line.kl};
  r.of(damage("top1")) = {0.5, 0.4, 0.6};
  r.nll_verdict = Difference::worse;
  r.metrics[index_of(metric("rel_err"))] = line.error;
  r.metrics[index_of(metric("recall"))] = line.recall;
  r.drift = 2 * line.error, r.residual = line.error;
  return r;
}

CsvTable csv_of_lines(const std::vector<EvalLine>& lines, const std::string& file = "e.csv") {
  std::vector<EvalRecord> records;
  for (const EvalLine& line : lines) records.push_back(made_record(line));
  return parse_csv(csv_of(eval_columns(), records), file);
}

/// Three methods, of which recall orders all pairs as KL does, and the relative error one of three; two documents.
std::vector<EvalLine> three_methods() {
  std::vector<EvalLine> lines;
  for (const char* document : {"all", "text-0", "text-1"}) {
    lines.push_back({.method = "sink", .document = document, .kl = 3, .error = 0.2, .recall = 0.1});
    lines.push_back({.method = "h2o", .document = document, .kl = 2, .error = 0.1, .recall = 0.2});
    lines.push_back({.method = "snapkv", .document = document, .kl = 1, .error = 0.3, .recall = 0.3});
  }
  return lines;
}

/// Five methods with a KL of 1 to 5, which recall orders, and the relative error but for one pair; two documents.
std::vector<EvalLine> five_methods() {
  std::vector<EvalLine> lines;
  for (const char* document : {"all", "text-0", "text-1"}) {
    double kl = 0;
    for (const char* method : {"sink", "h2o", "snapkv", "cam", "uniform"}) {
      ++kl;
      const double error = kl == 1 ? 0.2 : kl == 2 ? 0.1 : kl / 10;
      lines.push_back({.method = method, .document = document, .kl = kl, .error = error, .recall = 1 - kl / 10});
    }
  }
  return lines;
}

std::string markdown_of(const std::vector<CsvTable>& tables) { return markdown(make_report(tables, {})); }

using namespace kvbench::testing;

}  // namespace

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
  std::string csv = report_test::replay_header;
  csv.pop_back();
  csv += ",kl_predicted\n";
  const auto add = [&](const char* method, const char* budget, const char* kl) {
    std::string row = report_test::text({.method = method, .budget = budget});
    row.pop_back();
    csv += row + "," + kl + "\n";
  };
  // ratios .5 and .8 of small KL, whose median is .65, and 3 of a large one
  add("sink", "25%mem", "0.02"), add("h2o", "25%mem", "0.04"), add("snapkv", "25%mem", "3"), add("cam", "50%mem", "1");
  const CsvTable measured =
      csv_of_lines({{.kl = 0.04}, {.method = "h2o", .kl = 0.05}, {.method = "snapkv", .kl = 1}, {.method = "cam"}});
  const Document document = make_report(std::vector{parse_csv(csv, "r.csv"), measured}, {});
  const std::vector<std::string> titles = report_test::headings(document);
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

TEST_CASE("the answer names the method with the lowest KL, then the metric that predicts damage best, and how well") {
  const CsvTable table = csv_of_lines(five_methods());
  const Document document = make_report(std::vector{table}, {});
  REQUIRE(!document.answers.empty());
  CHECK(document.answers[0].scope == "m.gguf on book.txt, 4096 tokens");
  CHECK(
      document.answers[0].sentences[1] ==
      "Of 3 attention metrics, recall predicts damage to the output best here: it orders 1.00 [1.00, 1.00] of the "
      "pairs of methods at the same budget as KL does (one half: chance), 0.100 [0.100, 0.100] more than the relative "
      "error.");
  CHECK(document.answers[0].sentences[2].starts_with(
      "Of the 8 close pairs (KL within a factor of 3), between which a choice is difficult, recall orders 1.00"));
  const std::string text = markdown(document);
  CHECK(contains(text, "| recall | 1.00 [1.00, 1.00] |"));
  CHECK(contains(text, "Damage to the output of m.gguf on book.txt"));
}

TEST_CASE("where no metric is told from the relative error, none is called the best") {
  std::vector<EvalLine> lines = five_methods();
  for (EvalLine& line : lines) line.error = line.kl / 10;
  CHECK(make_report(std::vector{csv_of_lines(lines)}, {}).answers[0].sentences[1] ==
        "Of 3 attention metrics, none predicts damage to the output better than the relative error here, as far as "
        "these documents tell: rel_err orders 1.00 [1.00, 1.00] of the pairs of methods at the same budget as KL does "
        "(one half: chance).");
}

TEST_CASE("few pairs of methods tell nothing about metrics") {
  const Document document = make_report(std::vector{csv_of_lines(three_methods())}, {});
  CHECK(document.answers[0].sentences[1] ==
        "3 pairs of methods cannot tell which attention metric predicts damage to the output: it takes 10, as of five "
        "methods at one budget.");
  CHECK(document.answers[0].sentences.size() == 2);
}

TEST_CASE("rows without injection, which have replay's error, take precedence where all configurations have them") {
  std::vector<EvalLine> lines = three_methods();
  for (EvalLine line : three_methods()) {
    line.injection = {Inject::none, -1};
    line.error = line.kl, line.recall = 0.5, line.kl = 0;
    lines.push_back(line);
  }
  const Document document = make_report(std::vector{csv_of_lines(lines)}, {});
  CHECK(contains(markdown(document), "| rel_err | 1.00 [1.00, 1.00] |"));
  CHECK(contains(markdown(document), "errors with --inject none"));
  lines.pop_back(), lines.erase(lines.begin() + 9);  // one configuration lacks its row over all documents
  CHECK(contains(markdown_of({csv_of_lines(lines)}), "errors with --inject all"));
}

TEST_CASE("a metric that some methods lack comes last, and is compared with rel_err on its own pairs") {
  std::vector<EvalLine> lines = three_methods();
  for (EvalLine& line : lines) {
    if (std::string(line.method) == "snapkv") line.recall = std::nan("");
  }
  const Document document = make_report(std::vector{csv_of_lines(lines)}, {});
  // Recall has the pair of sink and h2o alone, which rel_err orders as well.
  const std::string text = markdown(document);
  CHECK(contains(text, "| recall | 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] | 0 [0, 0] | 0 [0, 0] |"));
  CHECK(text.find("| rel_err | 0.333") < text.find("| recall | 1.00"));
}

TEST_CASE("over texts, a figure has the ratio of each method to the best, and its geometric mean") {
  std::vector<EvalLine> here, there;
  for (const char* document : {"all", "text-0", "text-1"}) {
    here.push_back({.method = "h2o", .document = document, .kl = 1});
    here.push_back({.method = "sink", .document = document, .kl = 2});
    there.push_back({.method = "h2o", .document = document, .text = "code.txt", .kl = 4});
    there.push_back({.method = "sink", .document = document, .text = "code.txt", .kl = 32});
  }
  // Geometric means: 2 and 8. The ratios of two documents are 2, of two 8: ln 4 +- 3.182 sqrt((ln 2)^2 / 3).
  const Document document = make_report(std::vector{csv_of_lines(here, "a.csv"), csv_of_lines(there, "b.csv")}, {});
  const auto* const figure = std::get_if<Figure>(&document.blocks[1]);
  REQUIRE(figure != nullptr);
  REQUIRE(figure->drawings.size() == 1);
  const std::string svg = svg_element(figure->drawings[0]);
  CHECK(contains(svg, ">8<"));
  CHECK(contains(svg, "sink: KL 8, 4.00 [1.12, 14.3] times"));
  CHECK(svg.find(">h2o<") < svg.find(">sink<"));
}

TEST_CASE("over texts, the axis of the ratios does not follow intervals over many decades") {
  std::vector<CsvTable> tables;
  for (const auto& [text, kl] : std::map<const char*, double>{{"a.txt", 10}, {"b.txt", 1000}}) {
    std::vector<EvalLine> lines;
    for (const char* document : {"all", "text-0"}) {
      lines.push_back({.method = "h2o", .document = document, .text = text, .kl = 1});
      lines.push_back({.method = "sink", .document = document, .text = text, .kl = kl});
    }
    tables.push_back(csv_of_lines(lines, text));
  }
  // ln 100 +- 12.71 ln 10: from 1e-11 to 1e15 times.
  const std::string svg = svg_element(std::get<Figure>(make_report(tables, {}).blocks[1]).drawings[0]);
  CHECK(contains(svg, ">100</text>"));
  CHECK_FALSE(contains(svg, ">1e+06</text>"));
}

TEST_CASE("over texts, metrics are compared on the pairs of all texts, beside KL on other documents and texts") {
  std::vector<EvalLine> here = five_methods(), there = five_methods();
  for (EvalLine& line : there) line.text = "code.txt", line.kl = 6 - line.kl;
  const Document document = make_report(std::vector{csv_of_lines(here, "a.csv"), csv_of_lines(there, "b.csv")}, {});
  CHECK(document.answers[0].scope == "m.gguf on book.txt, code.txt together");
  CHECK(contains(document.answers[0].sentences[1], "orders 0.500 [0.500, 0.500] of the pairs"));  // both metrics
  CHECK(document.answers[0].sentences[2] == "This is not distinguishable from chance.");
  CHECK(contains(document.answers[0].sentences[3],
                 "; KL on one half of the documents orders 1.00 of them as on the other "
                 "half, and KL on another text 0."));
  // A page has all cells of the rows that name no metric.
  for (const Block& block : document.blocks) {
    const auto* const table = std::get_if<DocTable>(&block);
    if (table == nullptr) continue;
    for (const auto& row : table->rows) CHECK(row.size() == table->columns.size());
  }
  CHECK(contains(html(document), "(KL, other half)"));
}

TEST_CASE("without rows per document there are no intervals, and without two methods no prediction") {
  std::vector<EvalLine> lines = three_methods();
  lines.resize(3);
  const Document document = make_report(std::vector{csv_of_lines(lines)}, {});
  CHECK(contains(markdown(document), "| recall | 1.00 |"));
  std::vector<EvalLine> five = five_methods();
  five.resize(5);
  CHECK(contains(make_report(std::vector{csv_of_lines(five)}, {}).answers[0].sentences[1],
                 "cannot be told without rows of at least two documents of each task (--per-document)"));
  const Document one = make_report(std::vector{csv_of_lines({{}})}, {});
  CHECK(contains(one.answers[0].sentences[0], "is unknown"));
}

TEST_CASE("depth: growth, additivity and sensitivity appear where the rows have them") {
  std::vector<EvalLine> lines = three_methods();
  CHECK_FALSE(contains(markdown_of({csv_of_lines(lines)}), "Sensitivity of layers"));
  for (const char* document : {"all", "text-0", "text-1"}) {
    for (const std::int64_t layer : {0, 1}) {
      lines.push_back({.method = "sink", .document = document, .kl = 0.5, .injection = {Inject::one, layer}});
      lines.push_back({.method = "sink", .document = document, .error = layer == 0 ? 3.0 : 4.0, .layer = layer});
    }
  }
  const std::string text = markdown_of({csv_of_lines(lines)});
  CHECK(contains(text, "| text | sink | 25%mem | 2 | 1 | 3 | 0.333 [0.333, 0.333] |"));
  CHECK(contains(text, "| text | sink | 0 | 6 | 3 | 2 |"));
  CHECK(contains(text, "| text | sink | 1 | 8 | 4 | 1.6 |"));  // 8 / 5
  CHECK(contains(text, "Sensitivity of layers at a budget of 25%mem"));
  for (EvalLine& line : lines) {
    if (line.injection.mode == Inject::one && std::string(line.document) == "all") line.documents = 3;
  }
  CHECK_FALSE(contains(markdown_of({csv_of_lines(lines)}), "Sum of the KL of single layers"));
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
