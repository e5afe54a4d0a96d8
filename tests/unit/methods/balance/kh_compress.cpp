// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::vector<Entry> entries_of(const HeadData& head, const std::vector<Assignment>& settings, Index budget,
                              std::uint32_t seed) {
  const auto cache = open_cache("kh-compress", settings, prompt_of(head, ref()), budget, seed);
  const QueryBlock block = query_block(head, head.n, head.n + 1, head.n + 1, ref());
  return visible_entries(head, cache->entries(block), block, ref())[0];
}

/// The rule, written out, for a context of 4^log4 tokens or a few more.
Ids rule(const HeadData& head, Index log4, Index g, const Draws& draws) {
  const Index start = Index{1} << (2 * log4);
  Ids ids;
  for (Index j = 0; j < start; ++j) ids.push_back(static_cast<TokenId>(j * (head.n / start)));
  const auto product = [&](const std::vector<float>& x, Index width, TokenId i, TokenId j) {
    double sum = 0;
    for (Index c = 0; c < width; ++c)
      sum += static_cast<double>(x[static_cast<std::size_t>(i * width + c)]) *
             static_cast<double>(x[static_cast<std::size_t>(j * width + c)]);
    return sum;
  };
  double shift = 0, offset = 0;
  for (const TokenId id : ids) {
    shift = std::max(shift, product(head.keys, head.d, id, id));
    for (Index c = 0; c < head.dv; ++c)
      offset =
          std::max(offset, std::pow(static_cast<double>(head.values[static_cast<std::size_t>(id * head.dv + c)]), 2));
  }
  const auto kernel = [&](TokenId i, TokenId j) {
    return std::exp(static_cast<double>(head.scale) * (product(head.keys, head.d, i, j) - shift)) *
           (product(head.values, head.dv, i, j) + offset);
  };
  const double chance =
      0.5 / (std::pow(4.0, static_cast<double>(g + 1)) * static_cast<double>(log4 - g) * static_cast<double>(start));
  std::size_t bucket = std::size_t{4} << (2 * g);
  for (Index round = 0; round < log4 - g; ++round, bucket *= 2) {
    const double limit = 0.5 + std::log(2 / (chance * static_cast<double>(bucket)));
    const bool swapped = !(draws.uniform(0, static_cast<std::uint32_t>(round) + 1000) < 0.5);
    Ids next;
    for (std::size_t b = 0; b < ids.size(); b += bucket) {
      std::vector<bool> second;  // of each pair
      double most = 0;
      for (std::size_t p = 0; p < bucket / 2; ++p) {
        const auto pair = [&](std::size_t q, std::size_t r) {
          const TokenId i = ids[b + 2 * q], j = ids[b + 2 * q + 1], k = ids[b + 2 * r], l = ids[b + 2 * r + 1];
          return kernel(i, k) - kernel(i, l) - kernel(j, k) + kernel(j, l);
        };
        double sum = 0;
        for (std::size_t q = 0; q < p; ++q) sum += (second[q] ? -1 : 1) * pair(q, p);
        most = std::max(most, std::sqrt(pair(p, p)));
        const double u = 2 * draws.uniform(ids[b + 2 * p], static_cast<std::uint32_t>(round)) - 1;
        // The draw is mirrored: a small uniform keeps the first token.
        second.push_back(p > 0 && -u * limit * std::sqrt(pair(p, p)) * most <= sum);
        next.push_back(ids[b + 2 * p + (second[p] != swapped ? 1 : 0)]);
      }
    }
    ids = next;
  }
  return ids;
}

}  // namespace

// Equal tokens are pairs without a difference: their sums are 0, and the second is kept, but for the first pair of a
// bucket. The root of 4 is 2: of 4 tokens one bucket leaves 0 and 3, or, with the other halves, 1 and 2. Of 5 to 7
// tokens the first four are taken. The weights are n / kept, or one.
TEST_CASE("kh-compress keeps one token of each pair") {
  bool first = false, other = false;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const HeadData head = small_head(std::vector<float>(8, 1), 7);
    HeadData equal = head;
    equal.values.assign(8, 1);
    const auto entries = entries_of(equal, {}, 3, seed);
    const Ids ids = ids_of(entries);
    CHECK((ids == Ids{0, 3} || ids == Ids{1, 2}));
    (ids == Ids{0, 3} ? first : other) = true;
    CHECK(entries[0].num == 3.5f);
    CHECK(entries[1].den == 3.5f);
    CHECK(entries_of(equal, {{"weight", "one"}}, 3, seed)[0].num == 1);
  }
  CHECK(first);
  CHECK(other);
  const HeadData head = small_head(std::vector<float>(8, 1), 7);
  CHECK(ids_of(entries_of(head, {}, 4, 0)) == Ids{0, 1, 2, 3});
  CHECK(entries_of(head, {}, 7, 0).size() == 7);
  CHECK_THROWS_WITH_AS(entries_of(head, {}, 1, 0),
                       "kh-compress keeps at least 2 of 7 tokens, the root of the largest power of 4 among them; raise "
                       "the budget of 1",
                       Infeasible);
}

TEST_CASE("kh-compress holds what its rule says") {
  const HeadData head = random_head({.n = 70, .decoded = 1}, 61, ref());
  const HeadPrompt prompt = prompt_of(head, ref());
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const Draws draws(seed, "kh-compress", prompt);
    for (const auto& [budget, g] : {std::pair<Index, Index>{8, 0}, {15, 0}, {16, 1}, {60, 2}}) {
      CAPTURE(budget);
      CHECK(ids_of(entries_of(head, {}, budget, seed)) == rule(head, 3, g, draws));
    }
  }
}
