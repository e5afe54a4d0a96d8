// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Equal logits, two of three tokens with values 1, 2, 4 kept at weight 1: the answer is their plain mean.
TEST_CASE("random keeps tokens at weight 1") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({0, 0, 0, 0}, 3);
  const HeadPrompt prompt = prompt_of(head, *backend);
  const auto cache = open_cache("random", {}, prompt, 2, 5, *backend);
  const QueryBlock block = query_block(head, 3, 4, 4, *backend);
  const Ids ids = answering(*cache, block, head, *backend);

  CHECK(ids == random_tokens(Draws(5, "random", prompt), 3, 2));
  const float mean =
      (head.values[static_cast<std::size_t>(ids[0])] + head.values[static_cast<std::size_t>(ids[1])]) / 2;
  CHECK(answer(head, block, cache->entries(block), *backend)[0] == doctest::Approx(mean));
  CHECK_FALSE(cache->entries(block)[0].weight_den.present());
}

// 3000 seeds choose one of three tokens: each 1000 times with a standard deviation of 26; five of them are allowed.
TEST_CASE("random treats all tokens alike") {
  const auto backend = make_ref_backend();
  const HeadPrompt prompt = prompt_of(small_head({0, 0, 0}, 3), *backend);
  int count[3] = {0, 0, 0};
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    ++count[random_tokens(Draws(seed, "random", prompt), 3, 1).at(0)];
  }
  for (const int times : count) CHECK(std::abs(times - 1000) < 130);
}
