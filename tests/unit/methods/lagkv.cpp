// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

#include <kvbench/methods/eviction/lag_scores.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Rows of two channels, whose deviation is |y1 - y2| / sqrt 2. Behind one sink there are parts of two tokens:
///   1 2 with the ranges of 3 4, [0, 1] and [0, 2]: y = (1, 1) and (0, 1), deviations 0 and .71
///   3 4 with the ranges of 5 6, [0, 4] and none:   y = (0, 0) and (.25, 0), deviations 0 and .18
///   5 6 with the ranges of 7 8, [0, 1] and [0, 1]: y = (0, 1) and (4, 1), deviations .71 and 2.1
const std::vector<float> rows = {9, 9, 1, 2, 0, 2, 0, 0, 1, 2, 0, 1, 4, 1, 0, 0, 1, 1, 5, 5, 5, 5};

/// A context of 8 tokens and three more; the rows are its keys, or its values. The others have one channel, whose
/// deviation is 0.
HeadData parts_head(bool of_values) {
  HeadData head = small_head(std::vector<float>(11), 8);
  (of_values ? head.dv : head.d) = 2;
  (of_values ? head.values : head.keys) = rows;
  head.queries.assign(static_cast<std::size_t>(11 * head.d), 0);
  return head;
}

const std::vector<Assignment> small_parts = {{"sinks", "1"}, {"lag", "2"}};

}  // namespace

TEST_CASE("lagkv keeps as many tokens of each part but the last, those that fill the next one's ranges unevenly") {
  for (const bool of_values : {false, true}) {
    const HeadData head = parts_head(of_values);
    const auto kept = [&](Index budget) { return kept_tokens("lagkv", small_parts, head, budget); };
    CHECK(kept(4) == Ids{0, 5, 6, 7});  // the sink and the tail
    CHECK(kept(5) == Ids{0, 5, 6, 7});  // half a token of each part
    CHECK(kept(6) == Ids{0, 2, 4, 5, 6, 7});
    CHECK(kept(7) == Ids{0, 2, 4, 5, 6, 7});
    CHECK(kept(8) == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("lagkv compresses a part when a decoded token has filled the next one and was answered") {
  const HeadData head = parts_head(false);
  const auto cache = open_cache("lagkv", small_parts, prompt_of(head, ref()), 6, 0);
  const auto answered = [&](Index token) {
    return answering(*cache, query_block(head, token, token + 1, token + 1, ref()), head);
  };
  CHECK(cache->protected_tokens().sinks == 1);
  CHECK(cache->protected_tokens().recent == 3);
  CHECK(append(*cache, token_block(head, 8, 11, ref())) == 1);
  CHECK(answered(8) == Ids{0, 2, 4, 5, 6, 7, 8});
  CHECK(append(*cache, token_block(head, 9, 11, ref())) == 2);
  CHECK(answered(9) == Ids{0, 2, 4, 6, 7, 8, 9});
  CHECK(answered(10) == Ids{0, 2, 4, 6, 7, 8, 9, 10});

  const auto whole = open_cache("lagkv", small_parts, prompt_of(head, ref()), 8, 0);
  for (Index token = 8; token < 11; ++token) append(*whole, token_block(head, token, token + 1, ref()));
  CHECK(answering(*whole, query_block(head, 10, 11, 11, ref()), head).size() == 11);
}

TEST_CASE("lagkv refuses budgets below its tail, and contexts that it cannot compress") {
  const HeadPrompt prompt = prompt_of(parts_head(false), ref());
  CHECK_THROWS_WITH_AS(open_cache("lagkv", small_parts, prompt, 3, 0),
                       "lagkv never drops its 1 sinks and the last part of 2 tokens with the rest behind it, 4 of "
                       "these 8 tokens; lower lagkv.lag or lagkv.sinks",
                       Infeasible);
  CHECK_THROWS_AS(open_cache("lagkv", {}, prompt, 7, 0), Infeasible);
  CHECK_NOTHROW(open_cache("lagkv", {}, prompt, 8, 0));
}

// Within each part the rank decides: 1 for tokens 2 and 4, 0 for 1 and 3, and among equal ranks the lower token.
TEST_CASE("lagkv@kvpress keeps the best ranks of all parts, before them sinks and tail") {
  for (const bool of_values : {false, true}) {
    const HeadData head = parts_head(of_values);
    const auto kept = [&](Index budget) { return kept_tokens("lagkv@kvpress", small_parts, head, budget); };
    CHECK(kept(3) == Ids{5, 6, 7});
    CHECK(kept(4) == Ids{0, 5, 6, 7});
    CHECK(kept(5) == Ids{0, 2, 5, 6, 7});
    CHECK(kept(6) == Ids{0, 2, 4, 5, 6, 7});
    CHECK(kept(7) == Ids{0, 1, 2, 4, 5, 6, 7});
  }
  CHECK(kept_tokens("lagkv@kvpress", {{"sinks", "1"}, {"lag", "4"}}, parts_head(false), 3) == Ids{0, 6, 7});
  CHECK(kept_tokens("lagkv@kvpress", {}, parts_head(false), 5) == Ids{0, 1, 2, 3, 7});
}

// Keys of two channels and values of four; the second part has the range [0, 1] in each. The key of token 0 is (x, 0),
// the value of token 1 (2, 0, 0, 0), all others are zeros: deviations over channels less one are x / sqrt 2 for keys
// and 1 for values, so that token 0 is kept where x > sqrt 2. Over all channels they would be x / 2 and sqrt(3) / 2,
// and the limit 1.73; over those of the keys alone 2, over those of the values alone 1.22.
TEST_CASE("deviations of keys and of values are those of a sample, over channels less one") {
  const auto kept = [](const char* method, float x) {
    HeadData head = small_head(std::vector<float>(5), 4);
    head.d = 2, head.dv = 4;
    head.keys = {x, 0, 0, 0, 0, 0, 1, 1, 0, 0};
    head.values.assign(20, 0);
    head.values[4] = 2;
    std::fill_n(head.values.begin() + 12, 4, 1.0f);
    head.queries.assign(10, 0);
    return kept_tokens(method, {{"sinks", "0"}, {"lag", "2"}}, head, 3);
  };
  for (const char* method : {"lagkv", "lagkv@kvpress"}) {
    CAPTURE(method);
    CHECK(kept(method, 1.5f) == Ids{0, 2, 3});
    CHECK(kept(method, 1.3f) == Ids{1, 2, 3});
  }
  const auto rows = ref().adopt(std::vector<float>{3, 0, 0, 0, 0, 0, 1, 1}, 4, 2);
  CHECK(lag_scores(rows, 2, ref()).sum() == doctest::Approx(1));  // a softmax over the part
}
