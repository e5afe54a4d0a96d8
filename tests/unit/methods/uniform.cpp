// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("uniform keeps m of n tokens with weight n/m in both sums") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 6);
  const HeadPrompt prompt = prompt_of(head, ref());
  const QueryBlock block = query_block(head, 6, 7, 7, ref());
  const auto cache = open_cache("uniform", {}, prompt, 4, 3);
  const auto entries = visible_entries(head, cache->entries(block), block, ref())[0];

  CHECK(entries.size() == 4);
  for (const Entry& entry : entries) {
    CHECK(entry.num == 1.5f);
    CHECK(entry.den == 1.5f);
  }
  CHECK(ids_of(entries) == random_tokens(Draws(3, "uniform", prompt), 6, 4));
}

// Two of four tokens represent all four beside one exact decoded token: their weight is 2 * 2 of 5 in the denominator.
TEST_CASE("uniform keeps decoded tokens with weight 1") {
  HeadData head = small_head({0, 0, 0, 0, 0}, 4);
  head.values = {1, 1, 1, 1, 6};
  const auto cache = open_cache("uniform", {}, prompt_of(head, ref()), 2, 0);
  append(*cache, token_block(head, 4, 5, ref()));
  const QueryBlock block = query_block(head, 4, 5, 5, ref());
  CHECK(answer(head, block, cache->entries(block), ref())[0] == doctest::Approx((4 * 1 + 6) / 5.0));
}

TEST_CASE("uniform with the full budget carries no weights") {
  const HeadData head = small_head({0, 0, 0, 0}, 3);
  const auto cache = open_cache("uniform", {}, prompt_of(head, ref()), 5, 0);
  const EntryTables tables = cache->entries(query_block(head, 3, 4, 4, ref()));
  CHECK(ref().read(tables[0].ids) == Ids{0, 1, 2});
  CHECK_FALSE(tables[0].weight_num.present());
}
