// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Logits 1 5 2 7 3 for query head 0, their negatives for query head 1.
TEST_CASE("oracle-topk takes the largest visible logits of each query and query head") {
  HeadData head = small_head({1, 5, 2, 7, 3}, 3, 2);
  for (std::size_t i = 5; i < 10; ++i) head.queries[i] = -1;
  const auto cache = open_cache("oracle-topk", {}, prompt_of(head, ref()), 2, 0);

  const QueryBlock tail = query_block(head, 3, 5, 5, ref());  // rows: head 0 at 3, 4; head 1 at 3, 4
  CHECK(answering(*cache, tail, head, 1) == Ids{1, 2});       // prefill: the context's tokens only
  CHECK(answering(*cache, tail, head, 3) == Ids{0, 2});

  append(*cache, token_block(head, 3, 5, ref()));
  CHECK(answering(*cache, tail, head, 0) == Ids{1, 3});
  CHECK(answering(*cache, tail, head, 1) == Ids{1, 3});
  CHECK(answering(*cache, tail, head, 2) == Ids{0, 2});
}

TEST_CASE("oracle-topk answers a query with fewer visible tokens than the budget from all of them") {
  const HeadData head = small_head({1, 5, 2, 7, 3}, 5);
  const auto cache = open_cache("topk", {}, prompt_of(head, ref()), 3, 0);
  QueryBlock block = query_block(head, 0, 5, 5, ref());
  CHECK(answering(*cache, block, head, 0) == Ids{0});
  CHECK(answering(*cache, block, head, 1) == Ids{0, 1});
  CHECK(answering(*cache, block, head, 4) == Ids{1, 3, 4});

  block.first = ref().adopt(std::vector<std::int32_t>{0, 0, 1, 2, 3}, 5);  // a sliding window of two
  CHECK(answering(*cache, block, head, 4) == Ids{3, 4});
  CHECK(answering(*cache, block, head, 2) == Ids{1, 2});
}

TEST_CASE("oracle-topk breaks ties by the lower token and counts the full cache on the slow tier") {
  const HeadData head = small_head({4, 4, 4, 4}, 4);
  const auto cache = open_cache("oracle-topk", {}, prompt_of(head, ref()), 2, 0);
  CHECK(answering(*cache, query_block(head, 3, 4, 4, ref()), head) == Ids{0, 1});

  const Footprint arrays = cache->footprint();
  CHECK(arrays[0].rows == 4);
  CHECK(arrays[0].tier == Tier::slow);
  CHECK(arrays[0].read == Read::with_entry);
  CHECK(arrays[2].rows == 2);
  CHECK(arrays[2].meta());
}

namespace {

/// Masses 1, 1, 2 and values 1, 2, 4: output 11/4. The query is that of token 2.
struct ThreeTokens {
  HeadData head = small_head(logs({1, 1, 2}), 3);
  QueryBlock block = query_block(head, 2, 3, 3, ref());

  ThreeTokens() {
    block.outputs = ref().adopt(std::vector<float>{2.75f}, 1, 1);
    block.log_sum_exp = ref().adopt(std::vector<float>{std::log(4.0f)}, 1, 1);
  }
  std::unique_ptr<CompressedCache> open(Index budget) {
    return open_cache("oracle-error", {}, prompt_of(head, ref()), budget, 0);
  }
};

}  // namespace

TEST_CASE("oracle-error keeps the token whose value is nearest to the output, not that of the most mass") {
  ThreeTokens t;
  CHECK(answering(*t.open(1), t.block, t.head) == Ids{1});
}

TEST_CASE("oracle-error weights two tokens so that their answer is exact") {
  ThreeTokens t;
  const auto cache = t.open(2);
  // Values 2 and 4 give 11/4 with shares 5/8 and 3/8.
  CHECK(answering(*cache, t.block, t.head) == Ids{1, 2});
  CHECK(answer(t.head, t.block, cache->entries(t.block), ref())[0] == doctest::Approx(2.75).epsilon(0.01));
}

TEST_CASE("oracle-error keeps all tokens with weight 1 at their number, and counts a weight per token") {
  ThreeTokens t;
  const auto cache = t.open(3);
  const EntryTables tables = cache->entries(t.block);
  CHECK_FALSE(tables[0].weight_num.present());
  CHECK(answering(*cache, t.block, t.head) == Ids{0, 1, 2});
  CHECK(t.open(2)->footprint()[2].rows == 2);
}
