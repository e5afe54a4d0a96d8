// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/answer.hpp>

#include <deque>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::report;

namespace {

/// The rows of one text: over all documents, and one per document.
class Rows {
 public:
  Rows& with(const std::string& method, const std::vector<double>& kl, const char* task = "text",
             Index compressed = 30) {
    EvalRecord r;
    r.task = task, r.method = method, r.budget = Budget::parse("25%mem"), r.document = "all";
    r.documents = std::ssize(kl), r.compressed_layers = compressed;
    r.of(damage("kl_mean")).mean = mean(kl);
    r.of(damage("nll_diff")).mean = 0, r.of(damage("top1")).mean = 0.875;
    add(r);
    for (std::size_t d = 0; d < kl.size(); ++d) {
      r.document = fmt::format("text-{}", d), r.document_sha256 = fmt::format("d{}", d);
      r.of(damage("kl_mean")).mean = kl[d];
      add(r);
    }
    return *this;
  }
  Rows& answering(Index answers, double match, double match_full) {
    for (EvalRecord& r : records_)
      r.answers = answers, r.of(damage("match")).mean = match, r.of(damage("match_full")).mean = match_full;
    return *this;
  }
  const RowsOfText& rows() const { return rows_; }

 private:
  void add(const EvalRecord& r) {
    records_.push_back(r);
    rows_.push_back(&records_.back());
  }
  std::deque<EvalRecord> records_;
  RowsOfText rows_;
};

using Answers = std::vector<std::string>;

Answers said(const Rows& rows) { return damage_answers(std::span(&rows.rows(), 1)); }

}  // namespace

TEST_CASE("the method with the lowest KL, those that cannot be told from it, and the next, by hand") {
  // log2 of the ratios to a: b -1, 0, 1, 2 (mean 1/2), c 2, 3, 4, 3 (mean 3, variance of the mean 1/6; t_3 is 3.1824).
  Rows rows;
  rows.with("c", {4, 8, 16, 8}).with("b", {0.5, 1, 2, 4}).with("a", {1, 1, 1, 1}).with("random", {0.1, 0.1, 0.1, 0.1});
  CHECK(said(rows) ==
        Answers{"At 25 % of the memory on the task text, a changes the output least (KL 1 nats, perplexity x 1, the "
                "same most probable token in 87.5 % of the predictions); b (KL 1.88) cannot be told from it; the next "
                "is c with 8 times the KL (95 % interval 3.25 to 19.7 over 4 documents). 4 documents tell KL apart "
                "where it differs by a factor of about 3.3 or more."});
}

TEST_CASE("where no method can be told from the best, none is named") {
  Rows rows;
  rows.with("a", {1, 1, 1}).with("b", {0.5, 1, 3});
  CHECK(said(rows) ==
        Answers{"At 25 % of the memory on the task text, 3 documents cannot tell which method changes the "
                "output least: a (KL 1), b (KL 1.5). 3 documents tell KL apart where it differs by a factor of about "
                "9.4 or more."});
}

TEST_CASE("answers are counted") {
  Rows rows;
  rows.with("a", {1, 1, 1}, "passkey").with("b", {9, 9, 9}, "passkey").answering(2, 0.5, 1);
  CHECK(said(rows).at(0).starts_with(
      "At 25 % of the memory on the task passkey, a changes the output least (KL 1 nats, perplexity x 1, the same most "
      "probable token in 87.5 % of the predictions, 1 of 2 answers right (2 with the full cache)); the next is b"));
}

TEST_CASE("two documents test nothing, and no best method is named") {
  Rows rows;
  rows.with("a", {1, 1}, "passkey").with("b", {9, 9}, "passkey");
  CHECK(said(rows) ==
        Answers{"At 25 % of the memory on the task passkey, these rows cannot tell which method changes the output "
                "least: a (KL 1), b (KL 9). Nothing was tested; a test takes rows of at least 3 documents "
                "(--per-document)."});
}

TEST_CASE("methods that compressed fewer layers, and those without rows on every text, are not ranked") {
  Rows one, other;
  one.with("a", {1, 1}).with("b", {2, 2}).with("few", {0.1, 0.1}, "text", 29).with("missing", {0.1, 0.1});
  other.with("a", {4, 4}).with("b", {2, 2}).with("few", {0.1, 0.1}, "text", 29);
  const RowsOfText texts[] = {one.rows(), other.rows()};
  // Geometric means: a and b 2. Ratios b / a of the four documents: 2, 2, 1/2, 1/2.
  CHECK(
      damage_answers(texts) ==
      Answers{"At 25 % of the memory on the task text, 4 documents cannot tell which method changes the output least: "
              "a (KL 2), b (KL 2). 4 documents tell KL apart where it differs by a factor of about 3.6 or more. a has "
              "the lowest KL on 1 of 2 texts, b on 1."});
}

TEST_CASE("over texts, the documents of all texts are paired with their own") {
  Rows one, other;
  one.with("a", {1, 1}).with("b", {4, 4});
  other.with("a", {2, 2}).with("b", {8, 16});
  const RowsOfText texts[] = {one.rows(), other.rows()};
  const Answers answers = damage_answers(texts);
  REQUIRE(answers.size() == 1);
  CHECK(
      answers[0].ends_with(" times the KL (95 % interval 2.74 to 8.26 over 4 documents of 2 texts). 4 documents tell "
                           "KL apart where it differs by a factor of about 1.7 or more. a has the lowest KL "
                           "on 2 of 2 texts."));
}
