// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/sampling/leader_partition.hpp>
#include <kvbench/methods/sampling/reservoir.hpp>

#include <support/chi_square.hpp>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::test;
using kvbench::test::follows;

namespace {

double distance(const Tokens& tokens, Index i, Index j) {
  double sum = 0;
  for (Index c = 0; c < tokens.d; ++c) sum += std::pow(static_cast<double>(tokens.key(i)[c]) - tokens.key(j)[c], 2);
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("keys join the nearest representative within the radius, worked by hand") {
  // radius 2: 0 opens A; 1 joins A; 5 opens B; 0.5 joins A; 6 joins B; 10 opens C (5 from B); 5.5 joins B;
  // 3 is 3 from A and 2 from B: the boundary belongs to B.
  const Stream stream({.d = 1, .dv = 1, .keys = {0, 1, 5, 0.5, 6, 10, 5.5, 3}, .values = std::vector<float>(8)}, 8);

  const auto partition = leader_partition(ref(), stream.keys, 2, 8);

  REQUIRE(partition);
  CHECK(partition->labels == std::vector<std::int32_t>{0, 0, 1, 0, 1, 2, 1, 1});
  CHECK(partition->representatives == std::vector<TokenId>{0, 2, 5});
  CHECK_FALSE(leader_partition(ref(), stream.keys, 2, 2));
}

TEST_CASE("of two equally near representatives the older cluster is chosen") {
  const Stream stream({.d = 1, .dv = 1, .keys = {0, 5, 2.5}, .values = std::vector<float>(3)}, 3);
  CHECK(leader_partition(ref(), stream.keys, 3, 3)->labels == std::vector<std::int32_t>{0, 1, 0});
}

TEST_CASE("Lemma 2 (1), (3) and (4) hold") {
  const Tokens tokens = random_tokens_of(300, 6, 2, 11);
  const Stream stream(tokens, tokens.size());
  for (const float radius : {0.5f, 1.0f, 2.0f, 4.0f}) {
    const auto partition = leader_partition(ref(), stream.keys, radius, tokens.size());
    REQUIRE(partition);
    CHECK(partition->clusters() > 1);
    for (std::size_t c = 0; c < partition->representatives.size(); ++c) {
      const Index x = partition->representatives[c];
      CHECK(partition->labels[static_cast<std::size_t>(x)] == static_cast<std::int32_t>(c));                   // (1)
      for (std::size_t e = 0; e < c; ++e) CHECK(distance(tokens, x, partition->representatives[e]) > radius);  // (4)
    }
    for (Index i = 0; i < tokens.size(); ++i) {  // (3)
      const auto cluster = static_cast<std::size_t>(partition->labels[static_cast<std::size_t>(i)]);
      CHECK(distance(tokens, i, partition->representatives[cluster]) <= radius);
    }
  }
}

TEST_CASE("the radius of a capacity fits, and nearly all of the capacity is used") {
  const Tokens tokens = random_tokens_of(500, 8, 1, 5);
  const Stream stream(tokens, tokens.size());
  float earlier = INFINITY;
  for (const Index capacity : {1, 2, 10, 50, 200}) {
    const LeaderPartition partition = smallest_leader_partition(ref(), stream.keys, capacity);
    CHECK(partition.clusters() <= capacity);
    CHECK(partition.clusters() >= 9 * capacity / 10);
    CHECK(partition.radius < earlier);
    CHECK(leader_partition(ref(), stream.keys, partition.radius, capacity)->labels == partition.labels);
    earlier = partition.radius;
  }
}

TEST_CASE("a capacity for every distinct key gives radius 0") {
  const Stream stream({.d = 1, .dv = 1, .keys = {3, 1, 3, 2, 1}, .values = std::vector<float>(5)}, 5);

  const LeaderPartition partition = smallest_leader_partition(ref(), stream.keys, 3);

  CHECK(partition.radius == 0);
  CHECK(partition.labels == std::vector<std::int32_t>{0, 1, 0, 2, 1});
  CHECK(smallest_leader_partition(ref(), stream.keys, 2).clusters() <= 2);
  CHECK(smallest_leader_partition(ref(), stream.keys.slice(0, 0), 1).clusters() == 0);
}

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
