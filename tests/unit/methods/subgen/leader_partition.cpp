// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/leader_partition.hpp>

#include <doctest/doctest.h>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::test;

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

  const auto partition = leader_partition(*stream.backend, stream.keys, 2, 8);

  REQUIRE(partition);
  CHECK(partition->labels == std::vector<std::int32_t>{0, 0, 1, 0, 1, 2, 1, 1});
  CHECK(partition->representatives == std::vector<TokenId>{0, 2, 5});
  CHECK_FALSE(leader_partition(*stream.backend, stream.keys, 2, 2));
}

TEST_CASE("of two equally near representatives the older cluster is chosen") {
  const Stream stream({.d = 1, .dv = 1, .keys = {0, 5, 2.5}, .values = std::vector<float>(3)}, 3);
  CHECK(leader_partition(*stream.backend, stream.keys, 3, 3)->labels == std::vector<std::int32_t>{0, 1, 0});
}

TEST_CASE("Lemma 2 (1), (3) and (4) hold") {
  const Tokens tokens = random_tokens_of(300, 6, 2, 11);
  const Stream stream(tokens, tokens.size());
  for (const float radius : {0.5f, 1.0f, 2.0f, 4.0f}) {
    const auto partition = leader_partition(*stream.backend, stream.keys, radius, tokens.size());
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
    const LeaderPartition partition = smallest_leader_partition(*stream.backend, stream.keys, capacity);
    CHECK(partition.clusters() <= capacity);
    CHECK(partition.clusters() >= 9 * capacity / 10);
    CHECK(partition.radius < earlier);
    CHECK(leader_partition(*stream.backend, stream.keys, partition.radius, capacity)->labels == partition.labels);
    earlier = partition.radius;
  }
}

TEST_CASE("a capacity for every distinct key gives radius 0") {
  const Stream stream({.d = 1, .dv = 1, .keys = {3, 1, 3, 2, 1}, .values = std::vector<float>(5)}, 5);

  const LeaderPartition partition = smallest_leader_partition(*stream.backend, stream.keys, 3);

  CHECK(partition.radius == 0);
  CHECK(partition.labels == std::vector<std::int32_t>{0, 1, 0, 2, 1});
  CHECK(smallest_leader_partition(*stream.backend, stream.keys, 2).clusters() <= 2);
  CHECK(smallest_leader_partition(*stream.backend, stream.keys.slice(0, 0), 1).clusters() == 0);
}
