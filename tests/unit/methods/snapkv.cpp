// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Ids kept(const HeadData& head, std::vector<Assignment> settings, Index budget, std::size_t row = 0,
         const char* method = "snapkv") {
  return kept_tokens(method, std::move(settings), head, budget, row);
}

}  // namespace

// Queries 1, so that both rows of the window spread their attention over tokens 0 .. 4 like 5 : 1 : 1 : 3 : 4.
TEST_CASE("snapkv pools only the votes for the tokens before the window") {
  const HeadData head = small_head(logs({5, 1, 1, 3, 4, 100, 100, 1}), 7);
  const auto best = [&](const char* pooling, Index budget) {
    return kept(head, {{"window", "2"}, {"kernel", "3"}, {"pooling", pooling}}, budget);
  };

  CHECK(best("none", 3) == Ids{0, 5, 6});  // 5 1 1 3 4
  CHECK(best("none", 4) == Ids{0, 4, 5, 6});
  CHECK(best("max", 3) == Ids{0, 5, 6});  // 5 5 3 4 4: token 4 has the window's 100 beside it, which must not count
  CHECK(best("max", 4) == Ids{0, 1, 5, 6});
  CHECK(best("max", 5) == Ids{0, 1, 3, 5, 6});  // 4 = 4: the lower token
  CHECK(best("mean", 3) == Ids{3, 5, 6});       // 6 7 5 8 7, thirds, zeros outside
}

TEST_CASE("snapkv@kvpress pools by the mean over five neighbours, and has a window of 64") {
  const HeadData head = small_head(logs({5, 1, 1, 3, 4, 100, 100, 1}), 7);
  const std::vector<Assignment> window = {{"window", "2"}};
  CHECK(kept(head, window, 3, 0, "snapkv@kvpress") == Ids{2, 5, 6});  // 7 10 14 9 8, fifths
  CHECK(kept(head, {}, 3, 0, "snapkv@kvpress") == Ids{4, 5, 6});      // the last tokens: no more than 64
  std::vector<Assignment> all = {{"window", "64"}, {"kernel", "5"}, {"pooling", "mean"}};
  CHECK(find_method("snapkv").bind(all).text() == "window=64;kernel=5;pooling=mean");
  CHECK(find_method("snapkv@kvpress").bind(all).text().empty());  // its defaults
}

// Query 3 is 1 and query 4 is -1. Tokens 0 .. 2 get 4/8, 2/8, 1/8 from the first, which must not see token 4 (weight
// 1000), and 0.091, 0.182, 0.364 from the second: together 0.591, 0.432, 0.489. If query 3 attended to token 4, token 2
// would have the most votes.
TEST_CASE("snapkv is causal inside the window") {
  HeadData head = small_head(logs({4, 2, 1, 1, 1000, 1}), 5);
  head.queries[4] = -1;
  CHECK(kept(head, {{"window", "2"}, {"pooling", "none"}}, 3) == Ids{0, 3, 4});
}

// Two query heads, 1 and -1, one voting query. Weights 4 .5 1 1 5 and 1 for the window's token:
//   head 0: .32 .04 .08 .08 .40 (of 12.5)      pooled by max, kernel 3: .32 .32 .08 .40 .40
//   head 1: .05 .37 .18 .18 .04 (of 5.45)                               .37 .37 .37 .18 .18
//   summed: .37 .41 .26 .26 .44, then pooled: .41 .41 .41 .44 .44;  pooled, then summed: .69 .69 .45 .58 .58
TEST_CASE("snapkv selects per kv head, or per query head as released, and pooling does not commute with reduction") {
  HeadData head = small_head(logs({4, 0.5f, 1, 1, 5, 1, 1}), 6, 2);
  for (std::size_t i = 7; i < 14; ++i) head.queries[i] = -1;
  const std::vector<Assignment> base = {{"window", "1"}, {"kernel", "3"}};
  const auto with = [&](std::vector<Assignment> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };

  CHECK(kept(head, with({{"pooling", "none"}, {"per", "query_head"}}), 2, 0) == Ids{4, 5});
  CHECK(kept(head, with({{"pooling", "none"}, {"per", "query_head"}}), 2, 1) == Ids{1, 5});
  for (const char* reduce : {"mean", "sum"}) {
    CHECK(kept(head, with({{"reduce", reduce}}), 3) == Ids{3, 4, 5});
    CHECK(kept(head, with({{"reduce", reduce}, {"order", "pool_first"}}), 3) == Ids{0, 1, 5});
  }
  // Maximum over the heads: .32 .37 .18 .18 .40
  CHECK(kept(head, with({{"reduce", "max"}, {"pooling", "none"}}), 3) == Ids{1, 4, 5});
}

TEST_CASE("snapkv keeps the last tokens where the budget does not exceed the window") {
  const HeadData head = small_head(logs({9, 1, 1, 1, 1, 1}), 5);
  CHECK(kept(head, {{"window", "3"}}, 3) == Ids{2, 3, 4});
  CHECK(kept(head, {{"window", "3"}}, 1) == Ids{4});
  CHECK(kept(head, {{"window", "3"}}, 5) == Ids{0, 1, 2, 3, 4});
  CHECK(kept(head, {{"window", "32"}}, 2) == Ids{3, 4});  // a context shorter than the window is all window
}

TEST_CASE("snapkv keeps decoded tokens and protects its window") {
  const HeadData head = small_head(logs({9, 1, 1, 1, 1, 1}), 4);
  const auto cache = open_cache("snapkv", {{"window", "1"}}, prompt_of(head, ref()), 2, 0);
  append(*cache, token_block(head, 4, 6, ref()));
  CHECK(answering(*cache, query_block(head, 5, 6, 6, ref()), head) == Ids{0, 3, 4, 5});
  CHECK(cache->protected_tokens().recent == 1);
  CHECK(cache->protected_tokens().sinks == 0);
}

// Weights 4 1/2 | 1 1 and the queries 1 and -1 in the window. Without other tokens the first sees 4/5.5 and .5/5.5, the
// second, for which weights are reciprocal, .25/4.25 and 2/4.25: together .79 and .56. Where the harness keeps tokens
// of weight 20 that the first query sees, its shares are 4/25.5 and .5/25.5: together .22 and .49.
TEST_CASE("snapkv's votes are shares of all tokens that a query sees, including those that the harness keeps") {
  HeadData head = small_head(logs({4, 0.5f, 1, 1, 1}), 4);
  head.queries[3] = -1;
  HeadPrompt prompt = prompt_of(head, ref());
  const auto votes_for = [&] {
    const auto cache = open_cache("snapkv", {{"window", "2"}, {"pooling", "none"}}, prompt, 3, 0);
    return answering(*cache, query_block(head, 4, 5, 5, ref()), head);
  };
  CHECK(votes_for() == Ids{0, 2, 3});
  constexpr float none = -std::numeric_limits<float>::infinity();
  prompt.fixed_log_sum_exp = ref().adopt(std::vector<float>{none, none, std::log(20.0f), none}, 4);
  CHECK(votes_for() == Ids{1, 2, 3});
}

// Tokens 4 and 5 of the prompt are kept outside the context of 4: the window of 3 is queries 3 .. 5, and only token 3
// of the window is inside the context.
TEST_CASE("snapkv counts its window from the end of the whole prompt") {
  HeadData whole = small_head(logs({1, 7, 2, 1, 1, 1}), 6);
  HeadPrompt prompt = prompt_of(whole, ref());
  prompt.keys = prompt.keys.slice(0, 4);
  prompt.values = prompt.values.slice(0, 4);
  const auto cache = open_cache("snapkv", {{"window", "3"}, {"pooling", "none"}}, prompt, 2, 0);
  CHECK(answering(*cache, query_block(whole, 5, 6, 6, ref()), whole) == Ids{1, 3});
}
