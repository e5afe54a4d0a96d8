// SPDX-License-Identifier: Apache-2.0
// Score-only methods of one expression.
#include <doctest/doctest.h>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Norms 3 1 2 0.5 4 1: the shortest is 3, then 1 and 5, of which the lower token comes first, then 2.
TEST_CASE("knorm keeps the shortest keys") {
  const HeadData head = small_head({3, -1, 2, 0.5f, -4, 1, 0}, 6);
  CHECK(kept_tokens("knorm", {}, head, 1) == Ids{3});
  CHECK(kept_tokens("knorm", {}, head, 2) == Ids{1, 3});
  CHECK(kept_tokens("knorm", {}, head, 3) == Ids{1, 3, 5});
  CHECK(kept_tokens("knorm", {{"sinks", "1"}}, head, 2) == Ids{0, 3});
  CHECK(kept_tokens("knorm", {{"recent", "2"}}, head, 3) == Ids{3, 4, 5});  // 4 is the longest, and recent
}

// Keys of one channel are directions 1, -1 or 0. Four of six point up, one down, one is zero: the anchor is
// (4 - 1) / 6, and scores are -1 -1 1 0 -1 -1.
TEST_CASE("keydiff keeps the keys that differ from the mean direction") {
  const HeadData head = small_head({1, 5, -2, 0, 0.1f, 3, 0}, 6);
  CHECK(kept_tokens("keydiff", {}, head, 1) == Ids{2});
  CHECK(kept_tokens("keydiff", {}, head, 2) == Ids{2, 3});
  CHECK(kept_tokens("keydiff", {}, head, 3) == Ids{0, 2, 3});
}

// Directions a = (1, 0), b = (0, 1), c = (-1, 0); keys a a b a c c c. Two tokens are held, blocks of two compete.
//   0 1 | 2 3: a a b a, anchor (3, 1) / 4: b is the farthest, a follows, of which token 0 is the lowest: 0 2
//   0 2 | 4 5: a b c c, anchor (-1, 1) / 4: -cos is .71 for a, -.71 for b and c: token 0, and of 2 4 5 the lowest: 0 2
//   0 2 | 6:   a b c, anchor (0, 1) / 3: 0 for a and c, -1 for b: 0 6
// At once the anchor is (0, 1) / 7: 0 for all but token 2, so that the lowest are kept.
TEST_CASE("keydiff in blocks compares with the tokens that are held") {
  HeadData head = small_head(std::vector<float>(8), 7);
  head.d = 2;
  head.keys = {1, 0, 2, 0, 0, 1, 1, 0, -1, 0, -2, 0, -1, 0, 0, 0};
  head.queries.assign(16, 0);
  CHECK(kept_tokens("keydiff", {{"block", "2"}}, head, 2) == Ids{0, 6});
  CHECK(kept_tokens("keydiff", {}, head, 2) == Ids{0, 1});
  // Token 0 is a sink and token 6 recent; 1 is held, then 1 | 2 3: a b a, anchor (2, 1) / 3, so that b = 2 is held;
  // 2 | 4 5: b c c, anchor (-2, 1) / 3: b again.
  CHECK(kept_tokens("keydiff", {{"block", "2"}, {"sinks", "1"}, {"recent", "1"}}, head, 3) == Ids{0, 2, 6});
  // Token 6 is recent: a a b a c c, anchor (1, 1) / 6, c is the farthest.
  CHECK(kept_tokens("keydiff", {{"block", "6"}, {"recent", "1"}}, head, 2) == Ids{4, 6});
  CHECK(kept_tokens("keydiff", {{"block", "128"}}, head, 6) == Ids{0, 1, 3, 4, 5, 6});  // one block
}

// Squared keys 1 4 4 | 9 16 and values 2^j, squares 1 4 16 | 64 256, in blocks of 3 of which the last has two:
//   key shares 1/9 4/9 4/9 | 9/25 16/25; value shares 1/21 4/21 16/21 | 1/5 4/5
//   products .005 .085 .339 | .072 .512; sums .16 .63 1.21 | .56 1.44
TEST_CASE("curdkv multiplies the shares of key and value among their neighbours") {
  const HeadData head = small_head({1, -2, 2, 3, -4, 0}, 5);
  const auto kept = [&](const char* leverage, Index budget, const char* sinks) {
    return kept_tokens("curdkv", {{"window", "3"}, {"leverage", leverage}, {"sinks", sinks}}, head, budget);
  };
  CHECK(kept("product", 3, "0") == Ids{1, 2, 4});
  CHECK(kept("product", 4, "0") == Ids{1, 2, 3, 4});
  CHECK(kept("mean", 3, "0") == Ids{1, 2, 4});
  CHECK(kept("key", 2, "0") == Ids{1, 4});  // 1 and 2 are equal: the lower token
  CHECK(kept("value", 3, "0") == Ids{2, 3, 4});
  CHECK(kept("product", 3, "2") == Ids{0, 1, 4});
  CHECK(kept_tokens("curdkv", {}, head, 4) == Ids{0, 1, 2, 3});  // four sinks
}

TEST_CASE("curdkv takes shares of zeros as zero") {
  const HeadData head = small_head({0, 0, 1, 0, 0}, 4);
  CHECK(kept_tokens("curdkv", {{"window", "2"}, {"sinks", "0"}}, head, 1) == Ids{2});
}

// Weights 1 and 3, values 1 and 2: (1 * 1 + 3 * 2) / 4.
TEST_CASE("exact answers with the whole cache at any budget") {
  const HeadData head = small_head(logs({1, 3}), 1);
  const auto cache = open_cache("exact", {}, prompt_of(head, ref()), 1, 0);
  append(*cache, token_block(head, 1, 2, ref()));
  const QueryBlock block = query_block(head, 1, 2, 2, ref());
  CHECK(answer(head, block, cache->entries(block), ref())[0] == doctest::Approx(1.75));
  CHECK(cache->footprint()[0].rows == 2);
}

// Keys 2049 and 2048 are the same in 16 bits, where numbers from 2048 on are 2 apart and a tie goes to the even one; so
// are the values 2049 and 2048, and 1 + 2^-12 is 1. The second token is decoded.
TEST_CASE("exact rounds keys and values to numbers of 16 bits, those of decoded tokens too") {
  HeadData head = small_head({2049, 2048}, 1);
  head.values = {2049, 1 + 0x1p-12f};
  const auto half = open_cache("exact", {{"numbers", "f16"}}, prompt_of(head, ref()), 1, 0);
  append(*half, token_block(head, 1, 2, ref()));
  const QueryBlock block = query_block(head, 1, 2, 2, ref());
  CHECK(answer(head, block, half->entries(block), ref())[0] == doctest::Approx((2048.0 + 1) / 2).epsilon(1e-7));
  CHECK(half->footprint()[0].element == Element::f16);
}

// Equal logits, two of three tokens with values 1, 2, 4 kept at weight 1: the answer is their plain mean.
TEST_CASE("random keeps tokens at weight 1") {
  const HeadData head = small_head({0, 0, 0, 0}, 3);
  const HeadPrompt prompt = prompt_of(head, ref());
  const auto cache = open_cache("random", {}, prompt, 2, 5);
  const QueryBlock block = query_block(head, 3, 4, 4, ref());
  const Ids ids = answering(*cache, block, head);

  CHECK(ids == random_tokens(Draws(5, "random", prompt), 3, 2));
  const float mean =
      (head.values[static_cast<std::size_t>(ids[0])] + head.values[static_cast<std::size_t>(ids[1])]) / 2;
  CHECK(answer(head, block, cache->entries(block), ref())[0] == doctest::Approx(mean));
  CHECK_FALSE(cache->entries(block)[0].weight_den.present());
}

// 3000 seeds choose one of three tokens: each 1000 times with a standard deviation of 26; five of them are allowed.
TEST_CASE("random treats all tokens alike") {
  const HeadPrompt prompt = prompt_of(small_head({0, 0, 0}, 3), ref());
  int count[3] = {0, 0, 0};
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    ++count[random_tokens(Draws(seed, "random", prompt), 3, 1).at(0)];
  }
  for (const int times : count) CHECK(std::abs(times - 1000) < 130);
}
