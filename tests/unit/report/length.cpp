// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/length.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/report/eval/answer.hpp>

#include <unit/report/eval_lines.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::report;
using namespace kvbench::report_test;

namespace {

/// Three documents at 512 to 2048 tokens, and the rows over them. KL of h2o grows by 2^0.2 per doubling, that of q4_0
/// does not.
std::vector<EvalRecord> at_lengths(bool same_tokens = true) {
  std::vector<EvalRecord> out;
  for (int doubling = 0; doubling < 3; ++doubling) {
    for (const char* method : {"h2o", "q4_0"}) {
      const double slope = method == std::string("h2o") ? 0.2 : 0;
      for (const char* document : {"all", "text-0", "text-1", "text-2"}) {
        const double of_document = document[0] == 'a' ? 0 : 0.01 * (document[5] - '1');
        EvalRecord r = made_record({.method = method,
                                    .document = document,
                                    .kl = 0.5 * std::exp2((slope + of_document) * doubling),
                                    .documents = document[0] == 'a' ? 3 : 1});
        r.context_tokens = 512 << doubling, r.documents_sha256 = "all" + std::to_string(r.context_tokens);
        if (document[0] != 'a') {
          r.document_sha256 += std::to_string(r.context_tokens);
          r.scored_sha256 = same_tokens ? document : r.document_sha256;
        }
        out.push_back(r);
      }
    }
  }
  return out;
}

CsvTable table_of_rows(const std::vector<EvalRecord>& rows) { return parse_csv(csv_of(eval_columns(), rows), "e.csv"); }

std::vector<std::string> answers(const std::vector<EvalRecord>& rows) {
  std::vector<const EvalRow*> all;
  for (const EvalRecord& row : rows) all.push_back(&row);
  return growth_answers(growths_of(all));
}

}  // namespace

TEST_CASE("the page of a list of lengths begins with a verdict for each configuration") {
  const Document document = make_report(std::vector{table_of_rows(at_lengths())}, {});
  REQUIRE(!document.answers.empty());
  CHECK(document.answers[0].scope == "m.gguf on book.txt, 512 to 2048 tokens of context");
  REQUIRE(document.answers[0].sentences.size() == 2);
  CHECK(
      document.answers[0].sentences[0] ==
      "h2o at 25 % of the memory: KL grows 1.15 [1.13, 1.17] times per doubling of the context, 512 to 2048 tokens, 3 "
      "documents.");
  CHECK(document.answers[0].sentences[1] ==
        "q4_0 at 25 % of the memory: KL does not grow by 1.1 times or more per doubling of the context: 1.00 [0.983, "
        "1.02] times, 512 to 2048 tokens, 3 documents.");
  std::vector<std::string> names;
  for (const NamedDrawing& drawing : drawings_of(document)) names.push_back(drawing.name);
  CHECK(std::ranges::count(names, "damage-and-the-length-of-the-context") == 1);
  const std::string page = markdown(document);
  CHECK(contains(page, "| h2o | 25%mem | 0.5 | 0.574 | 0.66 | 1.15 [1.13, 1.17] | grows |"));
  CHECK(contains(page, "its upper end is at most 1.1"));
  for (const char* length : {"512", "1024", "2048"})  // each length still has its own section
    CHECK(contains(page, std::string("## Damage to the output of m.gguf on book.txt, ") + length + " tokens\n"));
}

TEST_CASE("lengths are compared only where the scored tokens are the same") {
  CHECK(answers(at_lengths()).size() == 2);
  CHECK(answers(at_lengths(false)).empty());
  const Document document = make_report(std::vector{table_of_rows(at_lengths(false))}, {});
  CHECK_FALSE(contains(markdown(document), "per doubling"));
  std::vector<EvalRecord> other = at_lengths();
  for (EvalRecord& row : other)  // another cache at one length is no length of the same setting
    if (row.context_tokens == 1024) row.settings.kv_dtype = "f32";
  CHECK(contains(markdown_of({table_of_rows(other)}), "| h2o | 25%mem | 0.5 | 0.66 |"));
}

TEST_CASE("rows that compressed fewer layers, layers, other injections and the exact cache do not count") {
  std::vector<EvalRecord> rows = at_lengths();
  const std::vector<std::string> expected = answers(rows);
  const std::size_t count = rows.size();
  for (std::size_t r = 0; r < count; ++r) {
    EvalRecord other = rows[r];
    other.of(damage("kl_mean")).mean *= static_cast<double>(other.context_tokens);
    for (const int kind : {0, 1, 2, 3}) {
      rows.push_back(other);
      if (kind == 0) rows.back().layer = 3;
      if (kind == 1) rows.back().injection.mode = Inject::none;
      if (kind == 2) rows.back().method = "exact";
      if (kind == 3) rows.back().status = replay::Status::failed;
    }
  }
  CHECK(answers(rows) == expected);
  rows = at_lengths();
  for (EvalRecord& row : rows)
    if (row.method == "h2o" && row.context_tokens == 512)
      row.compressed_layers = 29, row.of(damage("kl_mean")).mean = 9;
  CHECK(contains(answers(rows)[0], "1024 to 2048 tokens"));
}
