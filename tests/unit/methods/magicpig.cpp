// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/magicpig.hpp>

#include <algorithm>
#include <map>
#include <numbers>

#include <doctest/doctest.h>

#include <support/small.hpp>

#include <kvbench/methods/retrieval/hash_tables.hpp>
#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// What the buckets cost that queries asked: rows of two arrays.
struct Asked {
  double buckets = 0, tokens = 0;
};

/// What the footprint counts for a query, over its query heads.
Asked counted(const Footprint& arrays) {
  const auto extra = [&](std::string_view name) {
    return std::ranges::find(arrays, name, &FootprintArray::name)->extra;
  };
  return {extra("bounds of buckets"), extra("tokens by code")};
}

/// The rule, written out: weights of the tokens first .. last - 1 that answer the query row g at a position. Adds what
/// it asks.
std::map<TokenId, double> found_by_rule(const HeadData& head, const Draws& draws, const MagicpigParams& p, Index first,
                                        Index last, Index room, Index g, Index position, Asked& asked) {
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  std::vector<double> mean(at(head.d), 0);
  for (Index j = p.sinks; j < head.n - p.window; ++j) {
    for (Index c = 0; c < head.d; ++c)
      mean[at(c)] +=
          static_cast<double>(head.keys[at(j * head.d + c)]) / static_cast<double>(head.n - p.sinks - p.window);
  }
  const auto key = [&](Index j, Index c) { return static_cast<double>(head.keys[at(j * head.d + c)]) - mean[at(c)]; };
  const auto query = [&](Index c) {
    return static_cast<double>(head.queries[at((g * head.total + position) * head.d + c)]);
  };
  std::vector<int> agreements(at(head.n), 0);
  std::map<TokenId, double> found;
  Index tables = 0;
  for (; tables < p.tables; ++tables) {
    std::vector<bool> same(at(head.n), true);
    for (Index b = 0; b < p.bits; ++b) {
      double of_query = 0;
      std::vector<double> of_key(at(head.n), 0);
      for (Index c = 0; c < head.d; ++c) {
        const PhiloxBlock x = draws.block(tables * p.bits + b, static_cast<std::uint32_t>(c));
        const double gaussian = std::sqrt(-2 * std::log(uniform52(x.x[0], x.x[1]))) *
                                std::cos(2 * std::numbers::pi * uniform52(x.x[2], x.x[3]));
        of_query += gaussian * query(c);
        for (Index j = 0; j < head.n; ++j) of_key[at(j)] += gaussian * key(j, c);
      }
      for (Index j = 0; j < head.n; ++j) same[at(j)] = same[at(j)] && (of_query > 0) == (of_key[at(j)] > 0);
    }
    std::map<TokenId, double> next = found;
    asked.buckets += 1;
    asked.tokens += static_cast<double>(std::count(same.begin() + first, same.begin() + last, true));
    for (Index j = first; j < last; ++j) {
      if (same[at(j)] && ++agreements[at(j)] == 2) next[static_cast<TokenId>(j)] = 0;
    }
    if (std::ssize(next) > room) break;
    found = next;
  }
  for (auto& [id, weight] : found) {
    double product = 0, a = 0, b = 0;
    for (Index c = 0; c < head.d; ++c)
      product += query(c) * key(id, c), a += query(c) * query(c), b += key(id, c) * key(id, c);
    const double agree =
        std::pow(1 - std::acos(product / std::sqrt(a * b)) / std::numbers::pi, static_cast<double>(p.bits));
    double none = std::pow(1 - agree, static_cast<double>(tables)), once = 0;
    for (Index t = 0; t < tables; ++t) once += agree * std::pow(1 - agree, static_cast<double>(tables - 1));
    weight = 1 / (1 - none - once + 1e-4);
  }
  return found;
}

}  // namespace

// At a right angle a bit agrees with chance 1/2, a code of two bits with 1/4. Of three tables two or more agree with
// chance 3 (1/16) (3/4) + 1/64 = 10/64. Equal directions always agree, opposite ones never.
TEST_CASE("the chance of magicpig to find a token follows from its angle") {
  CHECK(found_twice(std::numbers::pi / 2, 2, 3) == doctest::Approx(10.0 / 64));
  CHECK(found_twice(0, 10, 150) == 1);
  CHECK(found_twice(std::numbers::pi, 10, 150) == 0);
  CHECK(found_twice(std::numbers::pi / 2, 2, 1) == 0);
}

TEST_CASE("codes are the signs of projections above thresholds") {
  // Two tokens with two codes of two bits each; thresholds 0 1 0 1.
  CHECK(codes_of(std::vector<float>{1, 2, -1, 2, 0, 1, 3, 0}, std::vector<float>{0, 1, 0, 1}, 2) ==
        std::vector<std::uint16_t>{3, 2, 0, 1});
}

// Three tables of one bit, five tokens with the codes 000, 010, 110, 111, 100. The query 110 agrees with tokens 2, 3, 4
// in table 0, and with 1, 2, 3 in table 1: 2 and 3 are found. In table 2 it agrees with 0, 1, 2, 4: now 1 and 4 are
// found too.
TEST_CASE("tables find the tokens that agree twice, and as many tables are asked as the budget allows") {
  const HashTables tables(std::vector<std::uint16_t>{0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0}, 3, 1);
  const std::vector<std::uint16_t> query = {1, 1, 0};
  const auto find = [&](Index first, Index last, Index most) { return tables.find(query, first, last, most); };
  CHECK(find(0, 5, 5).tokens == Ids{1, 2, 3, 4});
  CHECK(find(0, 5, 5).read == 3 + 3 + 4);
  CHECK(find(0, 5, 4).tables == 3);
  CHECK(find(0, 5, 3).tokens == Ids{2, 3});
  CHECK(find(0, 5, 3).tables == 2);
  CHECK(find(0, 5, 3).asked == 3);
  CHECK(find(0, 5, 3).read == 3 + 3 + 4);
  CHECK(find(0, 5, 1).tokens.empty());
  CHECK(find(0, 5, 1).tables == 1);
  CHECK(find(0, 5, 1).asked == 2);
  CHECK(find(0, 5, 1).read == 3 + 3);
  CHECK(find(2, 4, 2).tokens == Ids{2, 3});
  CHECK(find(2, 4, 2).tables == 3);
  CHECK(find(2, 4, 2).read == 2 + 2 + 1);
}

// One channel: a projection keeps the sign of a number, or flips it, so that the codes of a token agree with those of
// the query in all tables or in none. The keys between the first and the last token have the mean 3; the query is
// positive and finds 4 and 5, at the angle 0, whose weight is 1 / 1.0001.
TEST_CASE("magicpig finds the tokens in the direction of the query from the mean") {
  const HeadData head = small_head({9, 1, 2, 4, 5, 9, 0}, 6);
  const QueryBlock block = query_block(head, 6, 7, 7, ref());
  const auto entries = [&](Index budget) {
    const auto cache = open_cache("magicpig", {{"sinks", "1"}, {"window", "1"}}, prompt_of(head, ref()), budget, 3);
    return visible_entries(head, cache->entries(block), block, ref())[0];
  };
  const auto asked = [&](Index budget) {
    const auto cache = open_cache("magicpig", {{"sinks", "1"}, {"window", "1"}}, prompt_of(head, ref()), budget, 3);
    CHECK(counted(cache->footprint()).tokens == 0);
    cache->entries(block), cache->entries(block);
    return counted(cache->footprint());
  };
  // Each of the 150 tables has 3 and 4 in the bucket of the query, 1 and 2 in another. With room for one token the
  // second table finds two, and no further one is asked.
  CHECK(asked(6).buckets == 150);
  CHECK(asked(6).tokens == 150 * 2);
  CHECK(asked(3).buckets == 2);
  CHECK(asked(3).tokens == 2 * 2);
  CHECK(asked(1).tokens == 0);
  const auto all = entries(6);
  CHECK(ids_of(all) == Ids{0, 3, 4, 5});
  CHECK(all[0].den == 1);
  CHECK(all[1].den == doctest::Approx(1 / 1.0001));
  CHECK(all[1].num == all[1].den);
  CHECK(ids_of(entries(4)) == Ids{0, 3, 4, 5});
  CHECK(ids_of(entries(3)) == Ids{0, 5});  // no room for the two that table 1 finds
  CHECK(ids_of(entries(1)) == Ids{0});
}

TEST_CASE("magicpig holds what its rule says, and keeps decoded tokens") {
  const HeadData head = random_head({.n = 50, .decoded = 4, .group = 2}, 41, ref());
  const MagicpigParams params{.bits = 3, .tables = 12, .sinks = 2, .window = 6};
  const HeadPrompt prompt = prompt_of(head, ref());
  const Draws draws(9, "magicpig", prompt);
  for (const Index budget : {14, 30, 50}) {
    CAPTURE(budget);
    const auto cache =
        open_cache("magicpig", {{"bits", "3"}, {"tables", "12"}, {"sinks", "2"}, {"window", "6"}}, prompt, budget, 9);
    CHECK(append(*cache, token_block(head, 50, 54, ref())) == 4);
    const QueryBlock block = query_block(head, 50, 54, 54, ref());
    const auto entries = visible_entries(head, cache->entries(block), block, ref());
    Asked asked;
    for (Index r = 0; r < 8; ++r) {
      const Index position = 50 + r % 4;
      auto expected = found_by_rule(head, draws, params, 2, 44, budget - 8, r / 4, position, asked);
      for (const TokenId id : {0, 1, 44, 45, 46, 47, 48, 49}) expected[id] = 1;
      for (Index t = 50; t <= position; ++t) expected[static_cast<TokenId>(t)] = 1;
      const auto& row = entries[static_cast<std::size_t>(r)];
      REQUIRE(row.size() == expected.size());
      for (const Entry& entry : row) {
        REQUIRE(expected.contains(entry.id));
        CHECK(entry.den == doctest::Approx(expected.at(entry.id)).epsilon(1e-3));
      }
    }
    CHECK(counted(cache->footprint()).buckets == asked.buckets / 4);  // of four queries with two query heads each
    CHECK(counted(cache->footprint()).tokens == asked.tokens / 4);
  }
}
