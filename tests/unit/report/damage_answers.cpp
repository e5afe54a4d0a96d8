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
  Rows& noting(const std::string& reason) {
    for (EvalRecord& r : records_) r.reason = reason;
    return *this;
  }
  void streaming() {
    for (EvalRecord& r : records_) r.settings.protocol.stream = true;
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
  // log2 of the ratios to a: b -1, 0, 1, 2 (mean 1/2, variance of the mean 5/12), c 2, 3, 4, 3 (mean 3, variance of the
  // mean 1/6; t_3 is 4.177 at 1 - 5 % / 2 and 3.182 at 95 %). c is significant by Holm (p = 0.0052 * 2), b is not.
  Rows rows;
  rows.with("c", {4, 8, 16, 8}).with("b", {0.5, 1, 2, 4}).with("a", {1, 1, 1, 1}).with("random", {0.1, 0.1, 0.1, 0.1});
  CHECK(said(rows) ==
        Answers{"At 25 % of the memory on the task text, a changes the output least of the 3 methods run (geometric "
                "mean KL 1 nats, "
                "perplexity x 1, the same most probable token in 87.5 % of the predictions); b (1.41 times) cannot be "
                "told from it; the next is c with 8 times the KL (adjusted 95 % interval 2.45 to 26.1). Tested over 4 "
                "documents. 4 documents tell KL apart where it differs by a factor of about 3.7 or more."});
}

TEST_CASE("the best is that of the geometric mean over documents, which is tested") {
  Rows rows;
  rows.with("a", {1, 1, 1}).with("b", {0.1, 0.1, 10});
  CHECK(
      said(rows).at(0).find(
          "documents cannot tell which method changes the output least: b (geometric mean KL 0.464), a (2.15 times)") !=
      std::string::npos);
}

TEST_CASE("a method that nothing can be compared with has its figures") {
  Rows rows;
  rows.with("kivi4", {1, 3}).with("random", {0.1, 0.1});
  CHECK(said(rows) ==
        Answers{"At 25 % of the memory on the task text, kivi4 has KL 2.00 nats, perplexity x 1, the same most "
                "probable token in 87.5 % of the predictions; no other method was run there to compare it "
                "with."});
}

TEST_CASE("rows of formats that llama.cpp runs say what their KL leaves out, and streams how the context was read") {
  const auto last = [](const char* method, bool streams = false) {
    Rows rows;
    rows.with("a", {1, 1, 1}).with(method, {9, 9, 9});
    if (streams) rows.streaming();
    return said(rows).back();
  };
  CHECK(last("q5_1", true) == "The context passes through the compressed cache, too (--protocol stream).");
  CHECK(last("q5_1").starts_with("The context is exact here; llama.cpp reads it through its rounded cache"));
  CHECK(last("kivi4").starts_with("At 25 % of the memory"));
}

TEST_CASE("methods that were calibrated on what they compress are named, once") {
  Rows rows;
  rows.with("kvquant-nofisher", {1, 1, 1}).noting("calibrated on the evaluated context; kvquant-nofisher: 4 bits");
  rows.with("h2o", {9, 9, 9});
  CHECK(said(rows).back() ==
        "Calibrated on the context that they compress, not on another text as published, so that they may look better "
        "here: kvquant-nofisher.");
}

TEST_CASE("answers are counted") {
  Rows rows;
  rows.with("a", {1, 1, 1}, "passkey").with("b", {9, 9, 9}, "passkey").answering(2, 0.5, 1);
  CHECK(said(rows).at(0).find("predictions, 1 of 2 answers right (2 with the full cache)); the next is b") !=
        std::string::npos);
}

TEST_CASE("two documents test nothing, and the answer says what a test takes") {
  Rows rows;
  rows.with("a", {1, 1}, "passkey").with("b", {9, 9}, "passkey");
  CHECK(said(rows).at(0).ends_with(
      ", these rows cannot tell which method changes the output least: a (KL 1), b (KL 9). Nothing was tested. A test "
      "takes rows of at least 3 documents (--per-document)."));
}

TEST_CASE("methods that compressed fewer layers, and those without rows on every text, are not ranked") {
  Rows one, other;
  one.with("a", {1, 1}).with("b", {2, 2}).with("few", {0.1, 0.1}, "text", 29).with("missing", {0.1, 0.1});
  other.with("a", {4, 4}).with("b", {2, 2}).with("few", {0.1, 0.1}, "text", 29);
  const RowsOfText texts[] = {one.rows(), other.rows()};
  // Geometric means: a and b 2. Ratios b / a of the four documents: 2, 2, 1/2, 1/2.
  const Answers answers = damage_answers(texts);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].find("output least: a (geometric mean KL 2), b (1 times). Tested over 4 documents of 2 texts.") !=
        std::string::npos);
  CHECK(answers[0].ends_with(" factor of about 3.6 or more. a has the lowest KL on 1 of 2 texts, b on 1."));
}

TEST_CASE("over texts, the documents of all texts are paired with their own") {
  Rows one, other;
  one.with("a", {1, 1}).with("b", {4, 4});
  other.with("a", {2, 2}).with("b", {8, 16});
  const RowsOfText texts[] = {one.rows(), other.rows()};
  const Answers answers = damage_answers(texts);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].find("times the KL (adjusted 95 % interval 2.74 to 8.26). Tested over 4 documents of 2 texts.") !=
        std::string::npos);
}
