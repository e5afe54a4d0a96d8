// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/chelsea/chelsea_theorem.hpp>

#include <doctest/doctest.h>

using namespace kvbench;

TEST_CASE("partitions of three tokens by hand") {
  // Rays of n = 3: (2 - x)_+ counts pairs at distance 1, the constant all pairs between A and B. With token 0 in A:
  // AAA 0, 0; ABA 2, 2; AAB 1, 2; ABB 1, 2. ABA is the only best partition for both.
  const PartitionCount count = compare_partitions(3, alternating_partition(3));
  CHECK(count.partitions == 4);
  CHECK(count.better == 0);
  CHECK(count.equal == 1);
}

TEST_CASE("alternating is optimal up to n = 14; halves and a swapped pair are not") {
  for (int n = 2; n <= 14; ++n) {
    CHECK(compare_partitions(n, alternating_partition(n)).better == 0);
    if (n < 4) continue;
    const std::uint32_t halves = ((1u << n) - 1) & ~((1u << n / 2) - 1);
    CHECK(compare_partitions(n, halves).better > 0);
    CHECK(compare_partitions(n, alternating_partition(n) ^ 0b110u).better > 0);
  }
}

TEST_CASE("the objective of the algorithm differs") {
  // With equal sides ABAB and ABBA tie: each A token has a B neighbour.
  const PartitionCount equal = compare_best_edges(4, alternating_partition(4), true);
  CHECK(equal.partitions == 6);
  CHECK(equal.better == 0);
  CHECK(equal.equal > 1);
  CHECK(compare_best_edges(4, 0b0110, true).equal == equal.equal);
  // With any sides three A tokens have three edges, which a constant similarity counts in full.
  CHECK(compare_best_edges(4, alternating_partition(4), false).better > 0);
}
