// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("sink keeps the first and the most recent tokens of the context") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0}, 7);
  const HeadPrompt prompt = prompt_of(head, ref());
  const QueryBlock block = query_block(head, 7, 8, 8, ref());
  const auto kept = [&](const char* sinks, Index budget) {
    return answering(*open_cache("sink", {{"sinks", sinks}}, prompt, budget, 0), block, head);
  };

  CHECK(kept("2", 5) == Ids{0, 1, 4, 5, 6});
  CHECK(kept("0", 2) == Ids{5, 6});
  CHECK(kept("4", 7) == Ids{0, 1, 2, 3, 4, 5, 6});
  CHECK(kept("4", 100) == Ids{0, 1, 2, 3, 4, 5, 6});
  // The newest token is kept even where the sinks would fill the budget.
  CHECK(kept("4", 4) == Ids{0, 1, 2, 6});
  CHECK(kept("4", 2) == Ids{0, 6});
  CHECK(kept("4", 1) == Ids{6});
}

TEST_CASE("sink slides its window over decoded tokens with every query") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0}, 3);
  const auto cache = open_cache("sink", {{"sinks", "1"}}, prompt_of(head, ref()), 4, 0);
  CHECK(append(*cache, token_block(head, 3, 8, ref())) == 5);
  const QueryBlock block = query_block(head, 3, 8, 8, ref());

  CHECK(answering(*cache, block, head, 0) == Ids{0, 1, 2, 3});  // nothing lost yet
  CHECK(answering(*cache, block, head, 1) == Ids{0, 2, 3, 4});
  CHECK(answering(*cache, block, head, 2) == Ids{0, 3, 4, 5});
  CHECK(answering(*cache, block, head, 4) == Ids{0, 5, 6, 7});
  CHECK(cache->footprint()[0].rows == 4);
  CHECK(cache->protected_tokens().sinks == 1);
}

namespace {

/// Two dimensions are one rotated pair of angle `positions`; every key is (1, 0) when seen.
HeadData turning_head(Index n, Index total) {
  HeadData head{.n = n, .total = total, .d = 2, .dv = 1, .rope = Rope{}};
  for (Index j = 0; j < total; ++j) {
    head.keys.insert(head.keys.end(), {1, 0});
    head.queries.insert(head.queries.end(), {1, 0});
    head.values.push_back(1);
  }
  return head;
}

}  // namespace

TEST_CASE("sink rotates the keys of sinks by the number of evicted tokens") {
  const HeadData head = turning_head(4, 6);
  const HeadPrompt prompt = prompt_of(head, ref());
  const auto cache = open_cache("sink", {{"sinks", "1"}}, prompt, 2, 0);
  const auto sink_key = [&](const QueryBlock& block, std::size_t row) {
    return visible_entries(head, cache->entries(block), block, ref())[row].front().key;
  };

  // Prefill: 2 of 4 tokens are evicted for every query; with the exact tail, cache and position grow alike. cos 2, sin
  // 2.
  const QueryBlock tail = query_block(head, 4, 6, 6, ref());
  for (const std::size_t row : {0, 1}) {
    CHECK(sink_key(tail, row)[0] == doctest::Approx(-0.416147));
    CHECK(sink_key(tail, row)[1] == doctest::Approx(0.909297));
  }

  // Decode: 3 tokens are evicted at position 4 (cos 3, sin 3), 4 at position 5 (cos 4, sin 4).
  append(*cache, token_block(head, 4, 6, ref()));
  CHECK(sink_key(tail, 0)[0] == doctest::Approx(-0.989992));
  CHECK(sink_key(tail, 0)[1] == doctest::Approx(0.141120));
  CHECK(sink_key(tail, 1)[0] == doctest::Approx(-0.653644));
  CHECK(sink_key(tail, 1)[1] == doctest::Approx(-0.756802));
}

TEST_CASE("sink does not rotate keys where nothing was evicted, RoPE is absent or reposition is false") {
  const HeadData head = turning_head(4, 5);
  const QueryBlock block = query_block(head, 4, 5, 5, ref());
  const auto turned = [&](const HeadPrompt& prompt, std::vector<Assignment> settings, Index budget) {
    for (const EntryTable& table : open_cache("sink", std::move(settings), prompt, budget, 0)->entries(block)) {
      if (table.own_keys.present()) return true;
    }
    return false;
  };
  HeadPrompt prompt = prompt_of(head, ref());

  CHECK(turned(prompt, {}, 3));
  CHECK(turned(prompt, {{"reposition", "true"}}, 3));
  CHECK_FALSE(turned(prompt, {}, 4));
  CHECK_FALSE(turned(prompt, {{"reposition", "false"}}, 3));
  prompt.rope.reset();
  CHECK_FALSE(turned(prompt, {}, 3));
  CHECK_THROWS_AS(turned(prompt, {{"reposition", "true"}}, 3), Unavailable);
}

TEST_CASE("sink takes sinks from decoded tokens where the context has fewer tokens") {
  const HeadData head = turning_head(1, 6);
  const auto cache = open_cache("sink", {{"sinks", "2"}}, prompt_of(head, ref()), 3, 0);
  append(*cache, token_block(head, 1, 2, ref()));
  append(*cache, token_block(head, 2, 6, ref()));
  const QueryBlock block = query_block(head, 5, 6, 6, ref());
  const auto entries = visible_entries(head, cache->entries(block), block, ref())[0];

  CHECK(ids_of(entries) == Ids{0, 1, 5});
  CHECK(entries[1].key[0] == doctest::Approx(-0.989992));  // cos 3: 6 - 3 tokens are evicted
}
