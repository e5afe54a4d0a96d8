// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("token_range counts from its start") {
  CHECK(token_range(3, 4) == Ids{3, 4, 5, 6});
  CHECK(token_range(3, 0).empty());
}

TEST_CASE("rows are gathered in the order of their ids, copied into slices, and multiplied pairwise") {
  const Buffer<const float> rows = ref().adopt<float>({1, 2, 3, 4, 5, 6}, 3, 2);
  CHECK(ref().read(gathered(rows, {2, 0, 2}, ref())) == std::vector<float>{5, 6, 1, 2, 5, 6});
  const auto out = ref().adopt<float>({0, 0, 0, 0, 0, 0}, 3, 2);
  copy_rows(rows.slice(1, 2), out.slice(0, 2), ref());
  copy_rows(rows.slice(0, 0), out.slice(2, 0), ref());
  CHECK(ref().read(out) == std::vector<float>{3, 4, 5, 6, 0, 0});
  // (3, 4) and (5, 6) with (1, 2): 3 + 8 and 5 + 12.
  CHECK(ref().read(inner_products(rows.slice(1, 2), rows.slice(0, 1), ref())) == std::vector<float>{11, 17});
}

TEST_CASE("growing rows do not change the initial rows, and reuse their storage after clear()") {
  const Buffer<const float> start = ref().adopt<float>({1, 2}, 2, 1), more = ref().adopt<float>({5, 6, 7}, 3, 1);
  GrowingRows rows(ref(), start);
  rows.append(more, {2, 0});
  rows.append(more, {});
  CHECK(ref().read(rows.rows()) == std::vector<float>{1, 2, 7, 5});
  CHECK(ref().read(start) == std::vector<float>{1, 2});
  rows.clear();
  CHECK(rows.rows().rows() == 0);
  rows.append(more, {1});
  CHECK(ref().read(rows.rows()) == std::vector<float>{6});

  GrowingRows none(ref(), start.slice(2, 0));
  none.append(more, {});
  CHECK(none.add(0).cols() == 1);
  CHECK(none.rows().cols() == 1);
  none.append(more, {2});
  CHECK(ref().read(none.rows()) == std::vector<float>{7});
}

TEST_CASE("random tokens are distinct, nest by their number, and differ between seeds, methods and heads") {
  HeadPrompt head;
  const auto tokens = [&](std::uint32_t seed, const char* method) {
    return random_tokens(Draws(seed, method, head), 200, 20);
  };
  const Ids chosen = tokens(1, "random");
  REQUIRE(chosen.size() == 20);
  for (std::size_t i = 1; i < chosen.size(); ++i) CHECK(chosen[i - 1] < chosen[i]);
  CHECK(tokens(1, "random") == chosen);
  CHECK(tokens(1, "random") != tokens(2, "random"));
  CHECK(tokens(1, "random") != tokens(1, "uniform"));

  const Draws draws(1, "random", head);
  CHECK(std::ranges::includes(random_tokens(draws, 20, 9), random_tokens(draws, 20, 4)));
  CHECK(random_tokens(draws, 3, 50) == Ids{0, 1, 2});
  CHECK(random_tokens(draws, 20, 20) == token_range(0, 20));
  head.head = KvHeadId{1};
  CHECK(tokens(1, "random") != chosen);
}

TEST_CASE("a kept cache adds decoded tokens and counts one copy per query head where each selects") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0}, 4, 2);
  KeptCache cache(ref(), prompt_of(head, ref()),
                  {.per_head = true, .rows = 2, .ids = {0, 3, 2, -1}, .weight = {1, 2, 3, 0}});
  CHECK(append(cache, token_block(head, 4, 6, ref())) == 2);
  const QueryBlock block = query_block(head, 4, 6, 6, ref());  // rows: head 0 at 4, 5; head 1 at 4, 5

  CHECK(answering(cache, block, head, 0) == Ids{0, 3, 4});
  CHECK(answering(cache, block, head, 1) == Ids{0, 3, 4, 5});
  CHECK(answering(cache, block, head, 3) == Ids{2, 4, 5});

  const Footprint arrays = cache.footprint();
  CHECK(arrays[0].rows == 3 + 2 * 2);  // three slots in use and two tokens for each of two query heads
  CHECK(arrays[1].rows == 7);
  CHECK(arrays[2].name == "weights");
  CHECK(arrays[2].rows == 3);
  CHECK(arrays[2].meta());
}
