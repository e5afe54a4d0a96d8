// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/eval_record.hpp>

#include <algorithm>
#include <cmath>
#include <span>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::replay;

namespace {

/// Documents with four scored tokens: two answers, of two tokens and one.
EvalResults made_results(std::size_t documents, bool without_distant) {
  EvalResults out;
  out.model = "m.gguf", out.model_sha256 = "0123456789abcdef", out.text = "book.txt", out.context_tokens = 100;
  out.tasks = {&find_task("passkey")};
  for (std::size_t d = 0; d < documents; ++d) {
    EvalDocument document{
        .task = 0,
        .document = {
            .name = "passkey-" + std::to_string(d), .context = {}, .scored = {1, 2, 3, 4}, .spans = {{1, 3}, {3, 4}}}};
    if (without_distant) document.without_distant = {{.nll = 3, .right = true}, {.nll = 1}, {.nll = 1}};
    out.documents.push_back(std::move(document));
  }
  return out;
}

const Budget quarter = Budget::parse("25%mem");

TokenScore token(double kl, double nll_full, double nll, bool right_full, bool right) {
  return {.kl = kl,
          .nll_full = nll_full,
          .nll = nll,
          .same_top = right_full == right,
          .right_full = right_full,
          .right = right};
}

/// A pass that has the first answer wrong with the compressed cache, and the second one right in both.
PassResult made_pass(std::size_t configuration, std::size_t document, double kl = 1) {
  PassResult pass{.configuration = configuration, .document = document, .injection = {}, .reason = ""};
  pass.tokens = {token(kl, 0.5, 2.5, true, true), token(2 * kl, 0.5, 0.5, true, false), token(0, 0.5, 1.5, true, true)};
  pass.bytes = {.kv = 10, .meta = 2, .full = 48};
  LayerErrors errors{.layer = 3, .drift = 0.1 * kl, .residual = 0.01};
  errors.metrics[Metric::rel_err] = kl;
  pass.layers = {errors, errors};
  pass.layers[1].layer = 5, pass.layers[1].metrics[Metric::rel_err] = 3 * kl, pass.layers[1].drift = 0.2;
  return pass;
}

}  // namespace

TEST_CASE("a row summarises tokens and answers of all documents") {
  EvalResults results = made_results(2, true);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0, 1), made_pass(0, 1, 3)};
  // Of three tokens of which the full cache is sure, one has another most probable token.
  results.passes[0].tokens[0].sure = results.passes[0].tokens[1].sure = results.passes[1].tokens[2].sure = true;
  results.passes[0].tokens[0].tv = 0.5, results.passes[1].tokens[1].tv = 0.25;
  const std::vector<EvalRecord> rows = summarize(results, {});
  REQUIRE(rows.size() == 1);
  const EvalRecord& r = rows[0];
  CHECK(r.of(damage("tv")).mean == doctest::Approx(0.75 / 6));
  CHECK(r.of(damage("sure_changed")).mean == doctest::Approx(1.0 / 3));
  CHECK(r.sha256 == "0123456789ab");
  CHECK(r.task == "passkey");
  CHECK(r.document == "all");
  CHECK((r.documents == 2 && r.seeds == 1 && r.tokens == 6 && r.answers == 4));
  CHECK(r.of(damage("kl_mean")).mean == doctest::Approx(2));  // (1 + 2 + 0 + 3 + 6 + 0) / 6
  // Documents of 1 and 3: logarithms of mean .5493 and variance .6035; centre .8510, half 12.706 sqrt(.3017 + .1821).
  CHECK(std::log(r.of(damage("kl_mean")).lo) == doctest::Approx(0.8510 - 8.838).epsilon(1e-3));
  CHECK(std::log(r.of(damage("kl_mean")).hi) == doctest::Approx(0.8510 + 8.838).epsilon(1e-3));
  CHECK(r.of(damage("kl_p99")).mean == doctest::Approx(5.85));  // between 3 and 6
  CHECK(r.of(damage("top1")).mean == doctest::Approx(2.0 / 3));
  CHECK(r.of(damage("nll_full")).mean == doctest::Approx(0.5));
  CHECK(r.of(damage("nll")).mean == doctest::Approx(1.5));
  CHECK(r.of(damage("nll_diff")).mean == doctest::Approx(1));
  CHECK(r.of(damage("ppl_ratio")).mean == doctest::Approx(std::exp(1)));
  CHECK(r.key_tokens == 2);  // the first of each document: 3 - 0.5 is at least 2
  CHECK(r.of(damage("key_nll")).mean == doctest::Approx(2.5));
  CHECK(r.of(damage("key_nll_diff")).mean == doctest::Approx(2));
  CHECK(r.of(damage("match_full")).mean == 1);
  CHECK(r.of(damage("match_short")).mean == 0);  // the first answer has one right token of two
  CHECK(r.of(damage("match")).mean == doctest::Approx(0.5));
  CHECK(r.of(damage("harmful")).mean == doctest::Approx(0.5));
  CHECK(r.of(damage("beneficial")).mean == 0);
  CHECK(r.match_p == doctest::Approx(0.25));  // two to none: 2 / 4 - 1 / 4
  CHECK(r.match_verdict == Difference::undecided);
  CHECK(r.nll_verdict == Difference::worse);  // the same in both documents
  CHECK(r.bytes.of(CostKind::memory) == 12);
  CHECK(r.metrics[Metric::rel_err] == doctest::Approx(4));  // (1 + 3 + 3 + 9) / 4
  CHECK(std::isnan(r.metrics[Metric::relerr_balancekv]));
  CHECK(r.drift == doctest::Approx(0.2));
}

TEST_CASE("rows per document and per layer on request") {
  EvalResults results = made_results(2, true);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 1, 3), made_pass(0, 0, 1)};
  const std::vector<EvalRecord> rows = summarize(results, {.documents = true, .layers = true});
  REQUIRE(rows.size() == 9);  // 3 times (all layers, 3, 5)
  CHECK(rows[1].layer == 3);
  CHECK(rows[1].metrics[Metric::rel_err] == doctest::Approx(2));
  CHECK(rows[1].drift == doctest::Approx(0.2));  // 0.1 and 0.3
  CHECK(rows[3].document == "passkey-0");
  CHECK(rows[3].of(damage("kl_mean")).mean == doctest::Approx(1));
  CHECK(std::isnan(rows[3].of(damage("kl_mean")).lo));
  CHECK(rows[3].match_verdict == Difference::not_measured);
  CHECK(rows[8].document == "passkey-1");
  CHECK(rows[8].metrics[Metric::rel_err] == doctest::Approx(9));
}

TEST_CASE("documents at several lengths have rows of their own, by length, and the digests of each length alone") {
  EvalResults results = made_results(3, true);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  for (const std::size_t d : {0, 1, 2}) {
    results.documents[d].document.context.assign(d == 0 ? 50 : 20, 7);
    results.documents[d].document.scored.back() = d == 2 ? 5 : 4;
    results.documents[d].context_tokens = d == 0 ? 50 : 20;
    results.passes.push_back(made_pass(0, d, 1 + static_cast<double>(d)));
  }
  const std::vector<EvalRecord> rows = summarize(results, {.documents = true});
  REQUIRE(rows.size() == 5);  // over two documents of 20 tokens, each of them; over that of 50 tokens, and itself
  for (std::size_t r = 0; r < rows.size(); ++r) CHECK(rows[r].context_tokens == (r < 3 ? 20 : 50));
  CHECK((rows[0].documents == 2 && rows[3].documents == 1));
  CHECK(rows[0].of(damage("kl_mean")).mean == doctest::Approx(2.5));  // (2 + 4 + 3 + 6) / 6
  CHECK((rows[0].scored_sha256.empty() && rows[1].scored_sha256 == rows[4].scored_sha256));
  CHECK(rows[1].scored_sha256 != rows[2].scored_sha256);
  CHECK(rows[0].documents_sha256 != rows[3].documents_sha256);
}

TEST_CASE("seeds of a configuration share a row; the majority of an answer's seeds is tested") {
  EvalResults results = made_results(2, false);
  results.configurations = {
      {"random", "", quarter, true, 0}, {"random", "", quarter, true, 1}, {"random", "", quarter, true, 2}};
  for (std::size_t c = 0; c < 3; ++c)
    results.passes.push_back(made_pass(c, 0)), results.passes.push_back(made_pass(c, 1));
  for (std::size_t c : {0, 2})
    results.passes[c].tokens[1].right = true;  // document 0: seeds 0 and 1 have the first answer right
  const std::vector<EvalRecord> rows = summarize(results, {});
  REQUIRE(rows.size() == 1);
  CHECK((rows[0].seeds == 3 && rows[0].documents == 2 && rows[0].tokens == 6 && rows[0].answers == 4));
  CHECK(rows[0].of(damage("harmful")).mean == doctest::Approx(4.0 / 12));
  CHECK(rows[0].match_p == doctest::Approx(0.5));  // one harmful answer: 2 / 2 - 1 / 2
  CHECK(std::isnan(rows[0].of(damage("match_short")).mean));
  CHECK(rows[0].key_tokens == 0);
  CHECK(std::isnan(rows[0].of(damage("key_nll_diff")).mean));
}

// Of six kv heads three hold token 2, none 3, all 4, and none 9, which is behind the last one that any holds.
TEST_CASE("what kv heads hold of the statements of answers, whose tokens count once") {
  TaskDocument document{.name = "d", .spans = {{1, 2}, {2, 3}, {3, 4, NAN}}};
  document.spans[0].needle = 2, document.spans[0].needle_tokens = 3;
  document.spans[1] = document.spans[0];
  Holders holders{.of_token = {6, 6, 3, 0, 6, 1}, .heads = 6};
  CHECK(needles_held(document, holders).kept == doctest::Approx(9.0 / 18));
  CHECK(needles_held(document, holders).lost == doctest::Approx(1.0 / 3));
  document.spans[1].needle = 9, document.spans[1].needle_tokens = 1;
  CHECK(needles_held(document, holders).kept == doctest::Approx(9.0 / 24));
  CHECK(needles_held(document, holders).lost == 0.5);
  holders.heads = 0;  // no layer was compressed
  CHECK(std::isnan(needles_held(document, holders).kept));
  CHECK(std::isnan(needles_held({.name = "text", .spans = {{1, 2, NAN}}}, {.of_token = {1}, .heads = 1}).lost));

  EvalResults results = made_results(2, false);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0), made_pass(0, 1)};
  CHECK(std::isnan(summarize(results, {})[0].of(damage("needle_kept")).mean));
  results.passes[0].needles = {0.25, 0.5}, results.passes[1].needles = {0.75, 0};
  CHECK(summarize(results, {})[0].of(damage("needle_kept")).mean == 0.5);
  CHECK(summarize(results, {})[0].of(damage("needle_lost")).mean == 0.25);
}

// Of four kv heads tokens 0 .. 5 are held by 4, 4, 0, 1, 2 and 0, and tokens 6 and 7 by none.
TEST_CASE("what kv heads hold of the messages of conversations, by name") {
  TaskDocument talk{.name = "t", .messages = {{"user", 0, 3}, {"assistant", 3, 5}, {"user", 5, 8}}};
  const Holders holders{.of_token = {4, 4, 0, 1, 2, 0}, .heads = 4};
  const std::vector<TokensHeld> held = messages_held(talk, holders);
  REQUIRE(held.size() == 3);
  CHECK((held[0].kept == doctest::Approx(2.0 / 3) && held[0].lost == doctest::Approx(1.0 / 3)));
  CHECK((held[1].kept == doctest::Approx(3.0 / 8) && held[1].lost == 0));
  CHECK((held[2].kept == 0 && held[2].lost == 1));
  CHECK(messages_held(talk, {.of_token = {}, .heads = 0}).empty());
  CHECK(messages_held({.name = "text"}, holders).empty());

  EvalResults results = made_results(2, false);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0), made_pass(0, 1)};
  CHECK(summarize(results, {})[0].kept_by_span == "");
  results.documents[0].document.messages = talk.messages, results.passes[0].messages = held;
  results.documents[1].document.messages = {{"user", 0, 2}}, results.passes[1].messages = {{0.25, 0.5}};
  // 2 of the first document's 6 tokens of the user, and a quarter of the second one's 2
  CHECK(summarize(results, {})[0].kept_by_span == "user 0.312, assistant 0.375");
  CHECK(summarize(results, {})[0].lost_by_span == "user 0.625, assistant 0.000");  // 1 + 3 + 1 of 8
  const std::vector<EvalRecord> rows = summarize(results, {.documents = true});
  REQUIRE(rows.size() == 3);
  CHECK(std::ranges::count(rows, "user 0.250", &EvalRecord::kept_by_span) == 1);
  results.passes[1].messages.clear();  // such as those of a method that merges tokens
  CHECK(summarize(results, {})[0].kept_by_span == "");
}

TEST_CASE("a task on which the full cache fails, or which needs no context, cannot discriminate") {
  EvalResults results = made_results(2, true);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0), made_pass(0, 1)};
  for (PassResult& pass : results.passes) pass.tokens[0].right_full = pass.tokens[2].right_full = false;
  CHECK(summarize(results, {})[0].match_verdict == Difference::cannot_discriminate);
  CHECK(summarize(results, {})[0].verdict_reason == "the full cache answers only 0 of the questions");

  results.passes = {made_pass(0, 0), made_pass(0, 1)};
  for (EvalDocument& document : results.documents) document.without_distant.assign(3, {.nll = 0.5, .right = true});
  const EvalRecord easy = summarize(results, {})[0];
  CHECK(easy.match_verdict == Difference::cannot_discriminate);
  CHECK(easy.verdict_reason ==
        "the distant context lowers nll only by 0; a short context answers 1 of the questions, the full one 1");
  CHECK(easy.nll_verdict == Difference::cannot_discriminate);
}

TEST_CASE("equal answers are called equal only where there are enough of them") {
  for (const std::size_t documents : {29, 30}) {
    EvalResults results = made_results(documents, true);
    results.configurations = {{"exact", "", quarter, false, 0}};
    for (std::size_t d = 0; d < documents; ++d) {
      results.passes.push_back(made_pass(0, d, 0));
      for (TokenScore& t : results.passes.back().tokens) t = token(0, 0.5, 0.5, true, true);
    }
    const EvalRecord r = summarize(results, {})[0];
    CHECK(r.match_verdict == (documents == 30 ? Difference::none : Difference::undecided));  // 58 answers, 60 answers
    CHECK(r.nll_verdict == Difference::none);
  }
}

TEST_CASE("broken passes: a row has the status of all, or counts those that are missing") {
  EvalResults results = made_results(2, true);
  results.configurations = {{"h2o", "", quarter, false, 0}, {"quest", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0), made_pass(0, 1), made_pass(1, 0), made_pass(1, 1)};
  for (std::size_t i = 1; i < 4; ++i)
    results.passes[i].status = Status::skipped, results.passes[i].reason = "lacks column sums";
  const std::vector<EvalRecord> rows = summarize(results, {});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].status == Status::ok);
  CHECK(rows[0].reason == "1 of 2 passes are missing: lacks column sums");
  CHECK(rows[0].documents == 1);
  CHECK(rows[1].status == Status::skipped);
  CHECK(rows[1].reason == "lacks column sums");
  CHECK(rows[1].documents == 0);
}

TEST_CASE("injections have rows of their own, and passes of another document are refused") {
  EvalResults results = made_results(1, true);
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0), made_pass(0, 0), made_pass(0, 0)};
  results.passes[0].injection = {Inject::none, -1};
  results.passes[2].injection = {Inject::one, 4};
  const std::vector<EvalRecord> rows = summarize(results, {});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].injection.mode == Inject::all);
  CHECK(rows[1].injection == Injection{Inject::one, 4});
  CHECK(rows[2].injection.mode == Inject::none);
  results.passes[1].tokens.pop_back();
  CHECK_THROWS_AS(summarize(results, {}), Error);
}

TEST_CASE("rows carry the settings, the layers that were compressed, and digests of the tokens") {
  EvalResults results = made_results(2, true);
  results.tasks.push_back(&find_task("text"));
  results.documents.push_back({.task = 1, .document = results.documents[1].document});
  results.documents[0].document.context = {10, 11};
  results.settings.layers = "0-5", results.settings.weights = "f32";
  results.configurations = {{"h2o", "", quarter, false, 0}};
  results.passes = {made_pass(0, 0), made_pass(0, 1), made_pass(0, 2)};
  results.passes[1].layers.resize(1);
  const std::vector<EvalRecord> rows = summarize(results, {.documents = true});
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].settings.layers == "0-5");
  CHECK(rows[0].settings.weights == "f32");
  CHECK(rows[0].compressed_layers == 2);  // 3 and 5
  CHECK(rows[2].compressed_layers == 1);
  CHECK(rows[1].document_sha256 == "dc5dc710562a");  // printf '10 11\n1 2 3 4\n' | sha256sum
  CHECK(rows[2].document_sha256 == "a085b1f0c311");  // printf '\n1 2 3 4\n' | sha256sum
  CHECK(rows[4].document_sha256 == rows[2].document_sha256);
  CHECK(rows[0].document_sha256.empty());
  for (const EvalRecord& row : std::span(rows).first(3)) CHECK(row.documents_sha256 == "f13b823b5218");
  CHECK(rows[3].documents_sha256 == rows[4].documents_sha256);
  CHECK(rows[3].documents_sha256 != rows[0].documents_sha256);
}

TEST_CASE("layers as ranges") {
  CHECK(layer_ranges({}).empty());
  CHECK(layer_ranges({4}) == "4");
  CHECK(layer_ranges({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}
