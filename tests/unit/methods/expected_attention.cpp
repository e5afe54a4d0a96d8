// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include <support/turning.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// All queries are (1, 0) before RoPE, so that their covariance is 0 and the queries at the next position, 4, lie at 4
// radians: keys that point there are expected to be attended to.
TEST_CASE("expected-attention turns the mean query to the positions that follow") {
  std::vector<float> keys;
  for (const double angle : {1.0, 4.0, 3.0, 5.5, 0.0}) add_key(keys, 1, angle);
  const HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 4);
  const auto kept = [&](const char* future, const char* sinks, Index budget) {
    return kept_tokens("expected-attention", {{"future", future}, {"sinks", sinks}}, head, budget);
  };
  CHECK(kept("1", "0", 1) == Ids{1});
  CHECK(kept("1", "0", 2) == Ids{1, 2});  // cos 1 at token 2, cos 1.5 at 3, cos 3 at 0
  CHECK(kept("4", "0", 1) == Ids{3});     // positions 4 .. 7, in the mean 5.5
  CHECK(kept("1", "1", 2) == Ids{0, 1});
}

// The mean is (0, 0), queries are (2, 0) and (-2, 0), whose covariance is 4 in the first channel: at position 4 its
// direction has turned to 4 radians. Keys of length 1 along it have z = 4/2, across it 0, of length 2 across it 0.
TEST_CASE("expected-attention expects queries on both sides of their mean") {
  std::vector<float> keys;
  const double across = 4 + std::acos(0.0);
  add_key(keys, 2, across), add_key(keys, 1, across), add_key(keys, 1, 4), add_key(keys, -1, 4), add_key(keys, 1, 0);
  const HeadData head = turning_head(keys, {2, 0, -2, 0, 2, 0, -2, 0, 1, 0}, 4);
  const auto kept = [&](Index budget) {
    return kept_tokens("expected-attention", {{"future", "1"}, {"sinks", "0"}}, head, budget);
  };
  CHECK(kept(2) == Ids{2, 3});
}

// Weights e^1 and e^-1 of the sum for the keys along and against the query, .88 and .12, times values of length 1 and
// 5: .88 and .60; with epsilon 1, 1.88 and 5.6.
TEST_CASE("expected-attention multiplies the weight, and epsilon, by the norm of the value") {
  std::vector<float> keys;
  add_key(keys, 1, 2), add_key(keys, -1, 2), add_key(keys, 1, 0);
  HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0}, 2);
  head.values[1] = -5;
  const auto kept = [&](const char* epsilon) {
    return kept_tokens("expected-attention", {{"future", "1"}, {"sinks", "0"}, {"epsilon", epsilon}}, head, 1);
  };
  CHECK(kept("0") == Ids{0});
  CHECK(kept("1") == Ids{1});
}

TEST_CASE("expected-attention takes the queries of another text where it has one") {
  std::vector<float> keys;
  add_key(keys, 1, 2), add_key(keys, -1, 2), add_key(keys, 1, 0);
  const HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0}, 2), other = turning_head(keys, {-1, 0, -1, 0, -1, 0}, 2);
  HeadPrompt prompt = prompt_of(head, ref());
  const auto kept = [&] {
    const auto cache = open_cache("expected-attention", {{"future", "1"}, {"sinks", "0"}}, prompt, 1, 0);
    return answering(*cache, query_block(head, 2, 3, 3, ref()), head);
  };
  CHECK(kept() == Ids{0});
  prompt.calibration = std::make_shared<const HeadPrompt>(prompt_of(other, ref()));
  CHECK(kept() == Ids{1});
}

TEST_CASE("expected-attention says what it needs of the trace") {
  HeadData head = turning_head({1, 0, 1, 0, 1, 0}, {1, 0, 1, 0, 1, 0}, 2);
  CHECK_THROWS_WITH_AS(kept_tokens("expected-attention", {}, head, 1),
                       "expected-attention needs queries of the context from position 2 on, and there are none; replay "
                       "a trace that has them (--queries)",
                       Unavailable);
  head.rope.reset();
  CHECK_THROWS_WITH_AS(kept_tokens("expected-attention", {}, head, 1),
                       "expected-attention turns queries back by the model's RoPE, and there is no unscaled RoPE "
                       "over an even head dimension",
                       Unavailable);
}

// Queries are (1, 0), so that no length is beyond that of their mean: the score of a key is its product with the mean
// of the queries at the positions 5 and, with a reach of 2, 6.
TEST_CASE("triattention compares keys with the mean query at positions ahead") {
  std::vector<float> keys;
  for (const double angle : {1.0, 5.0, 5.6, 3.0, 0.0}) add_key(keys, 1, angle);
  const HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 4);
  const auto kept = [&](const char* reach) { return kept_tokens("triattention", {{"reach", reach}}, head, 1); };
  CHECK(kept("1") == Ids{1});
  CHECK(kept("2") == Ids{2});  // in the mean 5.5
}

// Queries (2, 0) and (-2, 0) have the mean 0 and the mean length 2: the longest keys are kept, wherever they point.
TEST_CASE("triattention keeps long keys where queries scatter") {
  std::vector<float> keys;
  add_key(keys, 1, 5), add_key(keys, 3, 2), add_key(keys, 2, 1), add_key(keys, 1, 5), add_key(keys, 1, 0);
  const HeadData head = turning_head(keys, {2, 0, -2, 0, 2, 0, -2, 0, 1, 0}, 4);
  CHECK(kept_tokens("triattention", {}, head, 1) == Ids{1});
  CHECK(kept_tokens("triattention", {}, head, 2) == Ids{1, 2});
}

// Head 0 has the scores 3 1 0 0 times a constant: mean 1, deviation 1.22, z 1.63 0 -.82 -.82. Head 1, with queries of a
// tenth of the length that point against the keys, has -3 -1 0 0: z -1.63 0 .82 .82. The maximum is 1.63 0 .82 .82, the
// mean 0 for all.
TEST_CASE("triattention compares z-scores of the query heads") {
  std::vector<float> keys;
  add_key(keys, 3, 5), add_key(keys, 1, 5), keys.resize(10);
  HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 4);
  head.group = 2;
  for (std::size_t i = 0; i < 10; ++i) head.queries.push_back(-0.1f * head.queries[i]);
  const auto kept = [&](const char* reduce, Index budget) {
    return kept_tokens("triattention", {{"reach", "1"}, {"reduce", reduce}}, head, budget);
  };
  CHECK(kept("max", 1) == Ids{0});
  CHECK(kept("max", 3) == Ids{0, 2, 3});
}
