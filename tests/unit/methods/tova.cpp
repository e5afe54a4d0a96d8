// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/steps.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The caches of a layer whose heads have these weights.
Caches open_layer(const std::string& method, const std::vector<HeadData>& heads, Index budget) {
  std::vector<HeadPrompt> prompts;
  for (const HeadData& head : heads) prompts.push_back(prompt_of(head, ref()));
  const MethodInfo& info = find_method(method);
  return info.prepare(prompts, info.bind({}), ref())(budget, 0);
}

}  // namespace

// The last query gives the tokens 5 1 2 3 9 1 of 21.
TEST_CASE("tova keeps the largest weights of the last query, kvpress its token beside them") {
  const HeadData head = small_head(logs({5, 1, 2, 3, 9, 1, 1}), 6);
  CHECK(kept_tokens("tova", {}, head, 2) == Ids{0, 4});
  CHECK(kept_tokens("tova", {}, head, 5) == Ids{0, 1, 2, 3, 4});  // 1 and 5 are equal: the lower token
  CHECK(kept_tokens("tova", {}, head, 6) == Ids{0, 1, 2, 3, 4, 5});
  CHECK(kept_tokens("tova@kvpress", {}, head, 2) == Ids{4, 5});
  CHECK(kept_tokens("tova@kvpress", {}, head, 1) == Ids{5});
  CHECK(kept_tokens("tova@kvpress", {{"sinks", "2"}}, head, 4) == Ids{0, 1, 4, 5});
}

// Shares of ten, 6 2 1 1 and 1 1 6 2: together 7 3 7 3. Each head alone would keep 0 1 and 2 3. kvpress keeps token 3.
TEST_CASE("tova keeps the same tokens for all heads of a layer") {
  const std::vector<HeadData> heads = {small_head(logs({6, 2, 1, 1, 1}), 4), small_head(logs({1, 1, 6, 2, 1}), 4)};
  for (const auto& [method, tokens] : {std::pair{"tova", Ids{0, 2}}, {"tova@kvpress", Ids{0, 3}}}) {
    const Caches caches = open_layer(method, heads, 2);
    for (std::size_t h = 0; h < 2; ++h) CHECK(ask(*caches[h], heads[h]).ids() == tokens);
  }
}

// Two query heads, 1 and -1: weights 8 1 1 2 of 12 and 1/8 1 1 1/2 of 2.625, together .71 .46 .46 .36.
TEST_CASE("tova takes the mean over the query heads") {
  HeadData head = small_head(logs({8, 1, 1, 2, 1}), 4, 2);
  for (std::size_t i = 5; i < 10; ++i) head.queries[i] = -1;
  CHECK(kept_tokens("tova", {}, head, 2, 1) == Ids{0, 1});
}

// Weights 4 3 2 1 | 5 1 2: the step of 4 reads 4 3 5 of 12 and drops token 1; that of 5 reads 4 5 1 and drops itself.
TEST_CASE("tova drops the lowest weight after every step") {
  const HeadData head = small_head(logs({4, 3, 2, 1, 5, 1, 2}), 4);
  const auto cache = open_cache("tova", {}, prompt_of(head, ref()), 2, 0);
  CHECK(decode_step(*cache, head, 4).ids() == Ids{0, 1, 4});
  CHECK(decode_step(*cache, head, 5).ids() == Ids{0, 4, 5});
  CHECK(decode_step(*cache, head, 6).ids() == Ids{0, 4, 6});

  const auto once = open_cache("tova@kvpress", {}, prompt_of(head, ref()), 2, 0);
  append(*once, token_block(head, 4, 7, ref()));
  CHECK(answering(*once, query_block(head, 6, 7, 7, ref()), head) == Ids{0, 3, 4, 5, 6});
}
