// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/chelsea/chelsea_theorem.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace kvbench {
namespace {

constexpr int largest_n = 18, largest_n_of_edges = 16;

/// F on every ray, an integer. c(x), the number of pairs of A and B at distance x, is the number of bits of the partition that
/// differ from the bit x places further. On the ray (m - x)_+, F is the sum over x < m of (m - x) c(x); on the constant, that of c.
std::vector<std::int64_t> ray_values(int n, std::uint32_t partition) {
  std::vector<std::int64_t> values;
  std::int64_t pairs = 0, ray = 0;  // of the distances below m: their number, and the value of the ray m
  for (int m = 1; m < n; ++m) {
    ray += pairs;
    if (m >= 2) values.push_back(ray);
    const std::uint32_t inside = (1u << (n - m)) - 1;
    pairs += std::popcount((partition ^ (partition >> m)) & inside);
  }
  values.push_back(pairs);
  return values;
}

/// Sum over A of the best edge to B, on every ray. As f decreases, the best edge is that to the nearest B.
std::vector<std::int64_t> edge_values(int n, std::uint32_t partition) {
  std::vector<int> nearest;
  for (int i = 0; i < n; ++i) {
    if ((partition >> i & 1u) != 0) continue;
    int distance = n;  // none
    for (int j = 0; j < n; ++j) {
      if ((partition >> j & 1u) != 0) distance = std::min(distance, std::abs(i - j));
    }
    nearest.push_back(distance);
  }
  std::vector<std::int64_t> values;
  for (int m = 2; m < n; ++m) {
    std::int64_t value = 0;
    for (const int x : nearest) value += std::max(0, m - x);
    values.push_back(value);
  }
  values.push_back(std::ranges::count_if(nearest, [&](int x) { return x < n; }));
  return values;
}

template <class F>
PartitionCount count_partitions(int n, std::uint32_t candidate, F values_of, bool (*wanted)(std::uint32_t, std::uint32_t)) {
  const std::vector<std::int64_t> best = values_of(n, candidate);
  PartitionCount count;
  for (std::uint32_t partition = 0; partition < 1u << n; ++partition) {
    if (!wanted(partition, candidate)) continue;
    const std::vector<std::int64_t> values = values_of(n, partition);
    bool better = false;
    for (std::size_t r = 0; r < best.size(); ++r) better |= values[r] > best[r];
    ++count.partitions;
    count.better += better;
    count.equal += values == best;
  }
  return count;
}

void run_chelsea_theorem61(CheckContext& context) {
  for (int n = 2; n <= largest_n; ++n) {
    context.poll();
    const PartitionCount count = compare_partitions(n, alternating_partition(n));
    CheckRow& row = context.add(CheckKind::exact, fmt::format("n={}, all partitions on {} rays", n, n - 1));
    row.count_exceptions(count.better, count.partitions);
    row.text = fmt::format("{} of {} partitions are better than the alternating one on some ray, {} equal it on all rays",
                           count.better, count.partitions, count.equal);
  }
  for (const bool balanced : {false, true}) {
    for (const int n : {4, 8, 12, largest_n_of_edges}) {
      context.poll();
      const PartitionCount count = compare_best_edges(n, alternating_partition(n), balanced);
      CheckRow& row = context.add(CheckKind::data,
                                  fmt::format("n={}, best edges alone, {}", n, balanced ? "equal sides" : "all partitions"));
      row.measured = static_cast<double>(count.better);
      row.text = fmt::format(
          "objective of the algorithm, the best edge of each A token: {} of {} partitions are better than the alternating one "
          "on some ray, {} equal it on all rays",
          count.better, count.partitions, count.equal);
    }
  }
}

}  // namespace

PartitionCount compare_partitions(int n, std::uint32_t candidate) {
  // Token 0 in A: the objective is the same when A and B change names.
  return count_partitions(n, candidate, ray_values, [](std::uint32_t p, std::uint32_t) { return (p & 1u) == 0; });
}

PartitionCount compare_best_edges(int n, std::uint32_t candidate, bool balanced) {
  if (!balanced) return count_partitions(n, candidate, edge_values, [](std::uint32_t, std::uint32_t) { return true; });
  return count_partitions(n, candidate, edge_values,
                          [](std::uint32_t p, std::uint32_t c) { return std::popcount(p) == std::popcount(c); });
}

std::uint32_t alternating_partition(int n) { return 0xaaaaaaaau & ((1u << n) - 1); }

Claim chelsea_theorem61() {
  return {.id = "chelsea.thm61",
          .paper = "Chelsea, arXiv 2506.11418, Theorem 6.1",
          .statement =
              "alternating tokens are the best bipartition for every similarity that decreases with distance and is convex",
          .method = "chelsea",
          .scope = Scope::once,
          .run = run_chelsea_theorem61};
}

}  // namespace kvbench
