// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/chelsea/checks.hpp>

#include <doctest/doctest.h>
#include <support/backends.hpp>

#include <kvbench/methods/merging/soft_matching.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;

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

// Signs + - - +: windows of 2 are + | 0 | -2 | 0 | +, so that one of 5 is too large and the squares are 1 + 0 + 4 + 0 +
// 1 = 6. From the pairs: 4 * 2 for i = j, and 2 (-1 + 1 - 1) for neighbours.
TEST_CASE("window sums by hand") {
  const std::vector<int> sides = {1, -1, -1, 1};
  CHECK(ray_by_windows(sides, 2) == 6);
  CHECK(ray_by_pairs(sides, 2) == 6);
  CHECK(count_windows(sides, 2).windows == 5);
  CHECK(count_windows(sides, 2).above == 1);
  for (Index m = 2; m <= 7; ++m) CHECK(ray_by_windows(sides, m) == ray_by_pairs(sides, m));
}

// The certificate decides as the enumeration does: of all partitions only the alternating one and its mirror have no
// window above.
TEST_CASE("the certificate holds for alternating sides only") {
  constexpr int n = 9;
  for (std::uint32_t partition = 0; partition < 1u << n; ++partition) {
    std::vector<int> sides;
    for (int i = 0; i < n; ++i) sides.push_back(partition >> i & 1u ? -1 : 1);
    const bool alternating =
        partition == alternating_partition(n) || partition == (~alternating_partition(n) & ((1u << n) - 1));
    CHECK((count_windows(sides, n).above == 0) == alternating);
  }
}

TEST_CASE("the sides of the method alternate in every chunk; one swapped pair fails") {
  std::vector<int> sides = sides_of(registered_chelsea(), 512, 512, cpu());
  CHECK(count_windows(sides, 512).above == 0);
  std::swap(sides[200], sides[201]);
  CHECK(count_windows(sides, 512).above > 0);
  const std::vector<int> chunks = sides_of(registered_chelsea(), 28, 8, cpu());
  for (std::size_t i = 0; i < chunks.size(); ++i) CHECK(chunks[i] == (i % 8 % 2 == 0 ? 1 : -1));
}

// Odd chunks: the sides of the links, without the probe by a budget of half the tokens.
TEST_CASE("links lead from even to odd offsets of odd chunks") {
  std::vector<float> keys;
  for (int i = 0; i < 38; ++i)
    keys.push_back(static_cast<float>(i * i % 17 - 8)), keys.push_back(static_cast<float>(i % 5 + 1));
  std::vector<int> sides(38, -1);
  for (const MergeLink& link : merge_links({.chunk = 19}, cpu().adopt(std::move(keys), 38), cpu())) {
    sides[static_cast<std::size_t>(link.from)] = 1;
  }
  for (const std::size_t begin : {0, 19}) CHECK(count_windows(std::span(sides).subspan(begin, 19), 19).above == 0);
}
