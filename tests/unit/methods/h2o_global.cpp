// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/steps.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::unique_ptr<CompressedCache> open_with_sums(const HeadData& head, std::vector<float> sums,
                                                std::vector<Assignment> settings, Index budget) {
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.column_sums = ref().adopt(std::move(sums), head.group, head.n);
  return open_cache("h2o-global", std::move(settings), prompt, budget, 0);
}

}  // namespace

// Sums 9 1 5 3 20: columns 4 and 0 are the largest, and 4 is also in the band.
TEST_CASE("h2o-global does not exclude recent tokens from its columns") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 5);
  const auto kept = [&](Index budget) { return ask(*open_with_sums(head, {9, 1, 5, 3, 20}, {}, budget), head).ids(); };
  CHECK(kept(2) == Ids{4});           // column 4, band 4: one token less than the budget
  CHECK(kept(3) == Ids{3, 4});        // column 4, band 3 4
  CHECK(kept(4) == Ids{0, 3, 4});     // columns 0 4, band 3 4
  CHECK(kept(5) == Ids{0, 2, 3, 4});  // columns 0 4, band 2 3 4
  CHECK(kept(10) == Ids{0, 1, 2, 3, 4});
}

// Columns 1 and 3 (sums 5 and 4), two recent tokens before the query and its own: B + 1 tokens where nothing overlaps.
TEST_CASE("h2o-global moves its band with every decoded query, and its columns are fixed") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0}, 4);
  const auto cache = open_with_sums(head, {1, 5, 2, 4}, {}, 4);
  CHECK(ask(*cache, head).ids() == Ids{1, 2, 3});
  CHECK(append(*cache, token_block(head, 4, 8, ref())) == 4);
  const QueryBlock block = query_block(head, 4, 8, 8, ref());
  CHECK(answering(*cache, block, head, 0) == Ids{1, 2, 3, 4});
  CHECK(answering(*cache, block, head, 1) == Ids{1, 3, 4, 5});
  CHECK(answering(*cache, block, head, 2) == Ids{1, 3, 4, 5, 6});
  CHECK(answering(*cache, block, head, 3) == Ids{1, 3, 5, 6, 7});
  CHECK_NOTHROW(check_entries(ref(), tokens_of(head, 8, ref()), 4, 8, cache->entries(block)));
}

TEST_CASE("h2o-global chooses columns per query head, or per kv head") {
  const HeadData head = small_head({0, 0, 0, 0, 0}, 4, 2);
  const std::vector<float> sums = {4, 0, 3, 1, 0, 5, 3, 1};
  const auto kept = [&](std::vector<Assignment> settings, std::size_t g) {
    return ask(*open_with_sums(head, sums, std::move(settings), 2), head).ids(g);
  };
  CHECK(kept({}, 0) == Ids{0, 3});
  CHECK(kept({}, 1) == Ids{1, 3});
  for (const std::size_t g : {0, 1}) {
    CHECK(kept({{"per", "kv_head"}}, g) == Ids{2, 3});
    CHECK(kept({{"per", "kv_head"}, {"reduce", "sum"}}, g) == Ids{2, 3});
    CHECK(kept({{"per", "kv_head"}, {"reduce", "max"}}, g) == Ids{1, 3});
  }
}

// Two heads with columns {0, 2} and {1, 2}, band 2 3 (d 1, dv 1): a token in both is stored once.
TEST_CASE("h2o-global stores columns and band per query head, and overlaps once") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 4, 2);
  const auto cache = open_with_sums(head, {4, 0, 3, 1, 0, 5, 3, 1}, {}, 4);
  CHECK(cache->footprint()[0].rows == 2 * (1 + 2));
  CHECK(cache->footprint()[1].rows == 2 * (1 + 2));
  append(*cache, token_block(head, 4, 7, ref()));
  CHECK(cache->footprint()[0].rows == 2 * (2 + 3));  // band 4 5 6
  CHECK(cache->protected_tokens().recent == 2);
}
