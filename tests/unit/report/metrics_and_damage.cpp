// SPDX-License-Identifier: Apache-2.0
// What a report says about attention metrics that predict damage, over documents, texts and layers.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include <kvbench/report/shapes/shape.hpp>
#include <unit/report/eval_lines.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::report;
using namespace kvbench::report_test;

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
  CHECK(contains(one.answers[0].sentences[0], "no other method was run there"));
  CHECK(contains(one.answers[0].sentences[1], "is unknown"));
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
