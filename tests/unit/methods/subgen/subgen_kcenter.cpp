// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::test;

namespace {

const Tokens eight = {.d = 1, .dv = 1, .keys = {0, 10, 4, 9, 1, 7, 3, 8}, .values = {0, 0, 0, 0, 9, 0, 0, 0}};

std::vector<TokenId> kept(const Stream& stream, const CompressedCache& cache, Index tokens) {
  std::vector<TokenId> ids;
  for (const auto& [id, weight] : entries_of(stream, cache, tokens)) {
    CHECK(weight == Weights{1, 1});
    ids.push_back(id);
  }
  return ids;
}
std::vector<TokenId> kept(const Tokens& tokens, Index budget, const std::vector<Assignment>& settings = {}) {
  const Stream stream(tokens, tokens.size());
  return kept(stream, *stream.prepare("subgen-kcenter", settings)(budget, 0), tokens.size());
}

}  // namespace

TEST_CASE("subgen-kcenter: eight tokens, worked by hand") {
  CHECK(find_method("clustergen").name == "subgen-kcenter");
  // r = 3, candidates 0 10 4 9 1: token 0 first, the farthest is 10.
  CHECK(kept(eight, 5) == std::vector<TokenId>{0, 1, 5, 6, 7});
  // r = 3; then 4 is 4 from the nearest centre, 9 and 1 are 1.
  CHECK(kept(eight, 6) == std::vector<TokenId>{0, 1, 2, 5, 6, 7});
  // r = 4, candidates 0 10 4 9.
  CHECK(kept(eight, 7) == std::vector<TokenId>{0, 1, 2, 4, 5, 6, 7});
  CHECK(kept(eight, 1) == std::vector<TokenId>{7});
  CHECK(kept(eight, 2) == std::vector<TokenId>{0, 7});
  CHECK(kept(eight, 8) == std::vector<TokenId>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(kept(eight, 100) == std::vector<TokenId>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("subgen-kcenter: equal distances take the lowest token") {
  CHECK(kept({.d = 1, .dv = 1, .keys = {0, 2, -2, 2, 5}, .values = std::vector<float>(5)}, 3, {{"recent", "0"}}) ==
        std::vector<TokenId>{0, 1, 4});
  CHECK(kept({.d = 1, .dv = 1, .keys = std::vector<float>(6), .values = std::vector<float>(6)}, 4) ==
        std::vector<TokenId>{0, 1, 4, 5});
}

TEST_CASE("subgen-kcenter: the share of the window is rounded up, and the window is never empty") {
  CHECK(kept(eight, 4, {{"recent", "0.5"}}) == std::vector<TokenId>{0, 1, 6, 7});
  CHECK(kept(eight, 4, {{"recent", "0.51"}}) == std::vector<TokenId>{0, 5, 6, 7});
  CHECK(kept(eight, 4, {{"recent", "1"}}) == std::vector<TokenId>{4, 5, 6, 7});
  CHECK(kept(eight, 4, {{"recent", "0"}}) == std::vector<TokenId>{0, 1, 2, 7});
  const Stream stream(random_tokens_of(60, 4, 2, 13), 60);  // 0.28 * 25 in fp64 is above 7
  CHECK(stream.prepare("subgen-kcenter", {{"recent", "0.28"}})(25, 0)->protected_tokens().recent == 7);
}

TEST_CASE("subgen-kcenter: values=true covers keys and values together") {
  // Budget 5, candidates 0 .. 4: token 1 is 10 from token 0 by its key, token 4 only sqrt(1 + 81) by its value; then
  // token 4 is sqrt(82) from token 0 and token 2 is 4.
  CHECK(kept(eight, 6, {{"values", "true"}}) == std::vector<TokenId>{0, 1, 4, 5, 6, 7});
}

TEST_CASE("subgen-kcenter: budgets with equal candidates share the order of centres, in any order of budgets") {
  const Stream stream(random_tokens_of(60, 4, 2, 13), 60);
  const std::vector<Assignment> settings = {{"recent", "0"}};
  const auto up = stream.prepare("subgen-kcenter", settings), down = stream.prepare("subgen-kcenter", settings);
  std::vector<std::vector<TokenId>> rising, falling;
  for (const Index budget : {2, 10, 40}) rising.push_back(kept(stream, *up(budget, 0), 60));
  for (const Index budget : {40, 10, 2}) falling.insert(falling.begin(), kept(stream, *down(budget, 0), 60));
  CHECK(rising == falling);
  CHECK(std::ranges::includes(rising[2], rising[1]));

  // Windows of different width have different candidates, so that nothing may be reused.
  const auto half = stream.prepare("subgen-kcenter");
  half(40, 0);
  CHECK(kept(stream, *half(10, 0), 60) == kept(stream, *stream.prepare("subgen-kcenter")(10, 0), 60));
}

TEST_CASE("subgen-kcenter: in decode the window slides and the centres are fixed") {
  const Stream stream(eight, 5);
  const auto cache = stream.prepare("subgen-kcenter")(4, 0);  // r = 2, candidates 0 10 4: centres 0 and 1
  CHECK(kept(stream, *cache, 5) == std::vector<TokenId>{0, 1, 3, 4});
  CHECK(cache->protected_tokens().recent == 2);

  CHECK(cache->takes({.first = 5, .keys = stream.keys.slice(5, 3), .values = stream.values.slice(5, 3)}) == 3);
  stream.append(*cache, 5, 3);

  const EntryTables tables = cache->entries(stream.queries({5, 6, 7}));
  REQUIRE(tables.size() == 2);
  CHECK(ref().read(tables[0].ids) == std::vector<TokenId>{0, 1});
  CHECK(tables[1].per_query);
  CHECK(ref().read(tables[1].ids) == std::vector<TokenId>{4, 5, 5, 6, 6, 7});
  CHECK(array_of(*cache, "keys").rows == 4);
  CHECK(kept(stream, *cache, 8) == std::vector<TokenId>{0, 1, 6, 7});
}

TEST_CASE("subgen-kcenter: every token answers until the budget is full") {
  const Stream stream(eight, 3);
  const auto cache = stream.prepare("subgen-kcenter")(6, 0);  // r = 3: no token is older
  CHECK(kept(stream, *cache, 3) == std::vector<TokenId>{0, 1, 2});
  stream.append(*cache, 3, 3);
  CHECK(kept(stream, *cache, 6) == std::vector<TokenId>{0, 1, 2, 3, 4, 5});
  stream.append(*cache, 6, 2);
  CHECK(kept(stream, *cache, 8) == std::vector<TokenId>{2, 3, 4, 5, 6, 7});

  const Stream longer(eight, 4);
  const auto some = longer.prepare("subgen-kcenter")(6, 0);  // token 0 is the only candidate
  CHECK(kept(longer, *some, 4) == std::vector<TokenId>{0, 1, 2, 3});
  longer.append(*some, 4, 4);
  CHECK(kept(longer, *some, 8) == std::vector<TokenId>{0, 3, 4, 5, 6, 7});
}

TEST_CASE("subgen-kcenter: a window from which no token has left needs one row") {
  const Stream stream(eight, 2);
  const auto cache = stream.prepare("subgen-kcenter")(20, 0);
  stream.append(*cache, 2, 6);
  const EntryTables tables = cache->entries(stream.queries({2, 5, 7}));
  REQUIRE(tables.size() == 1);
  CHECK_FALSE(tables[0].per_query);
  CHECK(ref().read(tables[0].ids).size() == 8);
}

TEST_CASE("subgen-kcenter: an empty context") {
  const Stream stream(eight, 0);
  const auto cache = stream.prepare("subgen-kcenter")(2, 0);
  CHECK(cache->entries(stream.queries({0})).empty());
  stream.append(*cache, 0, 8);
  CHECK(kept(stream, *cache, 8) == std::vector<TokenId>{6, 7});
}
