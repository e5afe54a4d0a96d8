// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/answers.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/eval_record.hpp>

#include <support/messages.hpp>

using namespace kvbench;
using namespace kvbench::eval;
using namespace kvbench::testing;

using Ids = std::vector<int>;

TEST_CASE("greedy answers take the largest logit, and of equal ones the lowest id") {
  const NextToken next({.tokens = 8}, Ids{1, 2});
  CHECK(next(std::array{0.0f, 3.0f, 1.0f, 3.0f}, 0) == 1);
  CHECK(next(std::array{2.0f, 2.0f}, 5) == 0);
  CHECK(next(std::array{-0.0f, 0.0f}, 0) == 0);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(message_of<Error>([&] { next(std::array{0.0f, NAN}, 0); }).find("logit 1") != std::string::npos);
  CHECK(message_of<Error>([&] {
          next(std::array{-infinity, -infinity}, 0);
        }).find("no finite logit") != std::string::npos);
}

// int(sha256("3 0\n5 6 7\n").hexdigest()[:13], 16) / 2**52 in Python, and the same at position 1.
TEST_CASE("samples are drawn by numbers that follow from seed, context and position alone") {
  const Generation generation{.tokens = 8, .temperature = 1, .seed = 3};
  const NextToken next(generation, Ids{5, 6, 7});
  CHECK(next.uniform(0) == doctest::Approx(0.9320151669691601).epsilon(1e-12));
  CHECK(next.uniform(1) == doctest::Approx(0.20682711261180087).epsilon(1e-12));
  CHECK(next.uniform(0) != NextToken(generation, Ids{5, 67}).uniform(0));
  CHECK(next.uniform(0) != NextToken({.tokens = 8, .temperature = 1, .seed = 4}, Ids{5, 6, 7}).uniform(0));
}

TEST_CASE("a sample is the first token whose cumulative probability exceeds the number") {
  const float least = -std::numeric_limits<float>::infinity();
  // Weights 0, 1, 0, 3 and 0: the bounds are 0, 1/4, 1/4, 1 and 1. At half the temperature 1 and 9: 1/10.
  const std::array logits{least, 0.0f, least, std::log(3.0f), least};
  int drawn = 0, colder = 0;
  for (Index position = 0; position < 4000; ++position) {
    const NextToken next({.tokens = 8, .temperature = 1}, Ids{1}), cold({.tokens = 8, .temperature = 0.5}, Ids{1});
    const double uniform = next.uniform(position);
    CHECK(next(logits, position) == (uniform < 0.25 ? 1 : 3));
    CHECK(cold(logits, position) == (uniform < 0.1 ? 1 : 3));
    drawn += uniform < 0.25, colder += uniform < 0.1;
  }
  CHECK(std::abs(drawn - 1000) < 5 * 28);  // five standard deviations of a binomial
  CHECK(std::abs(colder - 400) < 5 * 19);
}

TEST_CASE("answers differ at the first other token, or where one of them ends") {
  CHECK_FALSE(first_difference(Ids{1, 2, 3}, Ids{1, 2, 3}));
  CHECK(first_difference(Ids{1, 2, 3}, Ids{1, 4, 3}) == 1);
  CHECK(first_difference(Ids{1, 2}, Ids{1, 2, 3}) == 2);
  CHECK(first_difference(Ids{1, 2, 3}, Ids{1, 2}) == 2);
}

TEST_CASE("the share of the first tokens alike counts places that one of the answers has") {
  CHECK(share_alike(Ids{1, 2, 3, 4}, Ids{1, 5, 3, 6}, 4) == 0.5);
  CHECK(share_alike(Ids{1, 2, 3, 4}, Ids{1, 5, 3, 6}, 3) == doctest::Approx(2.0 / 3));
  CHECK(share_alike(Ids{1, 2}, Ids{1, 2, 3, 4}, 4) == 0.5);  // two places that one answer lacks
  CHECK(share_alike(Ids{1, 2}, Ids{1, 2}, 32) == 1);         // both have ended
  CHECK(share_alike(Ids{1, 2, 3}, Ids{2, 3, 1}, 3) == 0);    // a shift is a difference
}

TEST_CASE("repetition counts 4-grams that occurred before") {
  CHECK(std::isnan(repetition(Ids{1, 1, 1})));
  CHECK(repetition(Ids{1, 2, 3, 4, 5}) == 0);
  CHECK(repetition(Ids{1, 1, 1, 1, 1, 1}) == doctest::Approx(2.0 / 3));        // three, all the same
  CHECK(repetition(Ids{1, 2, 3, 4, 1, 2, 3, 4}) == doctest::Approx(1.0 / 5));  // the last of five
}

TEST_CASE("how documents are continued is checked, and told") {
  const auto refusal = [](const Generation& generation) { return message_of<Error>([&] { check(generation); }); };
  CHECK(refusal({.tokens = 1}).find("from 2 to 512") != std::string::npos);
  CHECK(refusal({.tokens = 513}).find("from 2 to 512") != std::string::npos);
  CHECK(refusal({.tokens = 2, .temperature = -1}).find("temperature is -1") != std::string::npos);
  CHECK(refusal({.tokens = 2, .temperature = NAN}).find("temperature is nan") != std::string::npos);
  CHECK(refusal({.temperature = 1}).find("a temperature has no effect") != std::string::npos);
  CHECK(refusal({.tokens = 2, .seed = 5}).find("no effect on greedy answers") != std::string::npos);
  CHECK_NOTHROW(check({}));
  CHECK_NOTHROW(check({.tokens = 512, .temperature = 0.5, .seed = 7}));
  CHECK(Generation{}.text().empty());
  CHECK(Generation{.tokens = 64}.text() == "64 greedy");
  CHECK(Generation{.tokens = 64, .temperature = 0.8, .seed = 3}.text() == "64 at 0.8 seed 3");
}

namespace {

/// Documents that are continued by up to 64 tokens: the full cache's answer, and that of the compressed one.
EvalResults continued(const std::vector<std::pair<Ids, Ids>>& answers) {
  EvalResults results;
  results.tasks = {&find_task("text")};
  results.configurations = {{"h2o", "", Budget::parse("25%mem"), false, 0}};
  for (const auto& [full, compressed] : answers) {
    EvalDocument& document = results.documents.emplace_back();
    document.document = {.name = "d", .scored = full, .spans = {{1, std::ssize(full), NAN}}};
    document.generate = 64;
    PassResult& pass = results.passes.emplace_back();
    pass.document = results.documents.size() - 1;
    pass.tokens.resize(full.size() - 1);
    pass.answer = compressed;
  }
  return results;
}

}  // namespace

TEST_CASE("a row has the figures of free answers") {
  const EvalResults results = continued(
      {{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}}, {{1, 2, 3, 4}, {1, 2, 9, 9}}, {{1, 2, 3, 4}, {1, 9, 9, 9, 9, 9}}});
  const EvalRecord row = summarize(results, {}).front();
  const auto mean = [&](Damage figure) { return row.of(figure).mean; };
  CHECK(mean(damage("same_answer")) == doctest::Approx(1.0 / 3));
  CHECK(mean(damage("first_differs")) == doctest::Approx(1.5));  // 2 and 1
  CHECK(mean(damage("alike_32")) == doctest::Approx((1 + 0.5 + 1.0 / 6) / 3));
  CHECK(mean(damage("alike_64")) == mean(damage("alike_32")));
  CHECK(std::isnan(mean(damage("alike_256"))));
  CHECK(mean(damage("answer_tokens_full")) == doctest::Approx(14.0 / 3));
  CHECK(mean(damage("answer_tokens")) == doctest::Approx(16.0 / 3));
  CHECK(mean(damage("repetition_full")) == 0);
  CHECK(mean(damage("repetition")) == doctest::Approx((0 + 0 + 1.0 / 3) / 3));
  CHECK(mean(damage("repetition_diff")) == mean(damage("repetition")));
  CHECK(row.of(damage("alike_32")).lo < mean(damage("alike_32")));
}

TEST_CASE("a row without a difference has no place of it, and short answers no repetition") {
  const EvalRecord row = summarize(continued({{{1, 2}, {1, 2}}}), {}).front();
  CHECK(row.of(damage("same_answer")).mean == 1);
  CHECK(std::isnan(row.of(damage("first_differs")).mean));
  CHECK(std::isnan(row.of(damage("repetition")).mean));
  EvalResults scored = continued({{{1, 2}, {}}});
  scored.documents[0].generate = 0;
  CHECK(std::isnan(summarize(scored, {}).front().of(damage("same_answer")).mean));
}
