// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/reservoir.hpp>

#include <doctest/doctest.h>

#include <support/chi_square.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using kvbench::test::follows;

namespace {

constexpr std::uint32_t trials = 20000;
const std::vector<double> weights = {2, 0, 1, 4, 0.5, 1, 3, 0.5};  // sum 12, of the first four 7

Draws draws_of(std::uint32_t seed) { return {seed, "test", HeadPrompt{}}; }

/// The token of each slot by draw number, after the first n weights.
std::vector<TokenId> held_after(Index n, Index slots, std::uint32_t seed, std::uint32_t first_draw = 0) {
  Reservoir reservoir(slots, first_draw);
  for (Index i = 0; i < n; ++i)
    reservoir.offer(draws_of(seed), static_cast<TokenId>(i), weights[static_cast<std::size_t>(i)]);
  std::vector<TokenId> tokens(static_cast<std::size_t>(slots));
  for (const Reservoir::Slot& slot : reservoir.held()) tokens[slot.draw - first_draw] = slot.token;
  return tokens;
}

}  // namespace

TEST_CASE("a reservoir holds nothing before the first positive weight, and that token in every slot after it") {
  Reservoir reservoir(3, 0);
  reservoir.offer(draws_of(0), 0, 0);
  CHECK(reservoir.held().empty());

  reservoir.offer(draws_of(0), 1, 2.5);
  CHECK(reservoir.total() == 2.5);
  REQUIRE(reservoir.held().size() == 3);
  for (const Reservoir::Slot& slot : reservoir.held()) {
    CHECK(slot.token == 1);
    CHECK(slot.weight == 2.5);
    CHECK(slot.next > 2.5);
  }
}

TEST_CASE("each slot is refilled by the first token whose total reaches M/U") {
  const Draws draws = draws_of(7);
  for (std::uint32_t slot = 0; slot < 5; ++slot) {
    double total = 0, next = 0;
    TokenId expected = -1;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      total += weights[i];
      if (weights[i] == 0 || total < next) continue;
      expected = static_cast<TokenId>(i);
      next = total / draws.uniform(expected, 40 + slot);
    }
    CHECK(held_after(8, 5, 7, 40)[slot] == expected);
  }
}

TEST_CASE("a slot holds token i with probability weight_i / total, at every stream time") {
  for (const Index n : {4, 8}) {
    std::vector<double> counts(8), law(8);
    double total = 0;
    for (Index i = 0; i < n; ++i) total += weights[static_cast<std::size_t>(i)];
    for (Index i = 0; i < n; ++i) law[static_cast<std::size_t>(i)] = weights[static_cast<std::size_t>(i)] / total;
    for (std::uint32_t seed = 0; seed < trials; ++seed)
      counts[static_cast<std::size_t>(held_after(n, 2, seed)[1])] += 1;
    CHECK(follows(counts, law));
  }
}

TEST_CASE("slots are independent of each other") {
  std::vector<double> counts(64), law(64);
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b) law[8 * a + b] = weights[a] * weights[b] / 144;
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    const std::vector<TokenId> held = held_after(8, 2, seed);
    counts[static_cast<std::size_t>(8 * held[0] + held[1])] += 1;
  }
  CHECK(follows(counts, law));
}

TEST_CASE("the earlier and later tokens of a slot have the joint distribution of the algorithm") {
  // Held a after 4 tokens (total 7) and b after 8 (total 12): b = a with probability 7/12, otherwise b is new, by its
  // weight.
  std::vector<double> counts(64), law(64);
  for (std::size_t a = 0; a < 4; ++a) {
    law[9 * a] = weights[a] / 7 * 7 / 12;
    for (std::size_t b = 4; b < 8; ++b) law[8 * a + b] = weights[a] / 7 * weights[b] / 12;
  }
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    counts[static_cast<std::size_t>(8 * held_after(4, 1, seed)[0] + held_after(8, 1, seed)[0])] += 1;
  }
  CHECK(follows(counts, law));
}

TEST_CASE("extreme weights do not cause endless loops or empty slots") {
  Reservoir reservoir(4, 0);
  const std::vector<double> extreme = {1e-300, 1e-300, 1, 1e300, 1e-300, 1e300};
  for (std::size_t i = 0; i < extreme.size(); ++i) reservoir.offer(draws_of(3), static_cast<TokenId>(i), extreme[i]);
  for (const Reservoir::Slot& slot : reservoir.held()) CHECK((slot.token == 3 || slot.token == 5));
}
