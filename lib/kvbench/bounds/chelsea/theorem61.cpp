// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/chelsea/theorem61.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::bounds {
namespace {

std::size_t to_size(Index i) { return static_cast<std::size_t>(i); }

constexpr int largest_n = 18, largest_n_of_edges = 16;

/// F on every ray, an integer. c(x), the number of pairs of A and B at distance x, is the number of bits of the
/// partition that differ from the bit x places further. On the ray (m - x)_+, F is the sum over x < m of (m - x) c(x);
/// on the constant, that of c.
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
PartitionCount count_partitions(int n, std::uint32_t candidate, F values_of,
                                bool (*wanted)(std::uint32_t, std::uint32_t)) {
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

/// Signs by tosses of a fair coin.
Sides random_sides(Index n, std::uint32_t draw) {
  Sides sides;
  for (Index i = 0; i < n; ++i) {
    sides.push_back(philox4x32({{static_cast<std::uint32_t>(i), draw, 0, 0}}, {61, 1}).x[0] & 1u ? 1 : -1);
  }
  return sides;
}

void check_window_sums(CheckContext& context) {
  constexpr Index n = 64;
  std::int64_t differences = 0, cases = 0;
  for (std::uint32_t draw = 0; draw < 16; ++draw) {
    const Sides sides = random_sides(n, draw);
    for (Index m = 2; m <= n; ++m, ++cases) differences += ray_by_pairs(sides, m) != ray_by_windows(sides, m);
  }
  context.exact({"x^T K x is the sum of the squared window sums", fmt::format("n={};partitions=16", n)}, differences,
                cases, fmt::format("{} of {} random partitions and rays differ", differences, cases));
}

void run_chelsea_theorem61(CheckContext& context) {
  check_window_sums(context);
  check_method_sides(context, registered_chelsea());
  for (int n = 2; n <= largest_n; ++n) {
    context.poll();
    const PartitionCount count = compare_partitions(n, alternating_partition(n));
    context.exact(
        {fmt::format("n={}, all partitions on {} rays", n, n - 1)}, count.better, count.partitions,
        fmt::format("{} of {} partitions are better than the alternating one on some ray, {} equal it on all rays",
                    count.better, count.partitions, count.equal));
  }
  for (const bool balanced : {false, true}) {
    for (const int n : {4, 8, 12, largest_n_of_edges}) {
      context.poll();
      const PartitionCount count = compare_best_edges(n, alternating_partition(n), balanced);
      context.data({fmt::format("n={}, best edges alone, {}", n, balanced ? "equal sides" : "all partitions")},
                   {.measured = static_cast<double>(count.better)},
                   fmt::format("objective of the algorithm, the best edge of each A token: {} of {} partitions are "
                               "better than the alternating one on some ray, {} equal it on all rays",
                               count.better, count.partitions, count.equal));
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

WindowCount count_windows(std::span<const int> sides, Index longest) {
  const Index n = std::ssize(sides);
  std::vector<Index> before(sides.size() + 1, 0);  // sums of the first i signs
  std::partial_sum(sides.begin(), sides.end(), before.begin() + 1);
  WindowCount count;
  for (Index m = 2; m <= longest; ++m) {
    for (Index begin = 1 - m; begin < n; ++begin) {
      const Index first = std::max<Index>(begin, 0), last = std::min(begin + m, n);
      const Index sum = before[to_size(last)] - before[to_size(first)];
      ++count.windows;
      count.above += sum * sum > (last - first) % 2;
    }
  }
  return count;
}

std::int64_t ray_by_pairs(std::span<const int> sides, Index m) {
  std::int64_t value = 0;
  for (Index i = 0; i < std::ssize(sides); ++i) {
    for (Index j = 0; j < std::ssize(sides); ++j) {
      value += std::max<Index>(0, m - std::abs(i - j)) * sides[to_size(i)] * sides[to_size(j)];
    }
  }
  return value;
}

std::int64_t ray_by_windows(std::span<const int> sides, Index m) {
  std::int64_t value = 0, sum = 0;
  const Index n = std::ssize(sides);
  for (Index last = 0; last < n + m - 1; ++last) {  // the window is last - m + 1 .. last
    if (last < n) sum += sides[to_size(last)];
    if (last >= m) sum -= sides[to_size(last - m)];
    value += sum * sum;
  }
  return value;
}

Sides sides_of(const ChelseaUnderTest& chelsea, Index tokens, Index chunk, Backend& backend) {
  constexpr Index d = 8;
  std::vector<float> keys;
  for (Index i = 0; i < tokens * d; ++i) {
    keys.push_back(
        static_cast<float>(standard_normal(philox4x32({{static_cast<std::uint32_t>(i), 0, 0, 0}}, {61, 2}))));
  }
  const std::vector<float> query(d, 0.0F);
  const Subject subject =
      make_subject({.name = "random keys", .keys = keys, .values = keys, .queries = query, .d = d, .dv = d}, backend);
  const ChelseaSettings all_merged{.sinks = 0, .recent = 0, .chunk = chunk, .slack = 0};
  const StreamPlan plan{.prompt = tokens, .budget = tokens / 2};
  Sides sides(to_size(tokens), 1);
  const std::vector<Snapshot> observed = observe_stream(subject, plan, chelsea(all_merged), backend);
  for (const HeldEntry& entry : observed.front().held) {
    sides[to_size(entry.id)] = -1;
  }
  return sides;
}

void check_method_sides(CheckContext& context, const ChelseaUnderTest& chelsea) {
  struct Case {
    Index tokens, chunk;
  };
  for (const Case c : {Case{4096, 4096}, Case{1000, 256}, Case{70, 16}}) {
    context.poll();
    const Sides sides = sides_of(chelsea, c.tokens, c.chunk, context.backend);
    WindowCount count;
    for (Index begin = 0; begin < c.tokens; begin += c.chunk) {
      const Index size = std::min(c.chunk, c.tokens - begin);
      const WindowCount chunk = count_windows(std::span(sides).subspan(to_size(begin), to_size(size)), size);
      count.windows += chunk.windows, count.above += chunk.above;
    }
    context.exact(
        {fmt::format("n={}, the method's own sides, every window", c.tokens), fmt::format("chunk={}", c.chunk)},
        count.above, count.windows,
        fmt::format("{} of {} windows of neighbours have a larger squared sum of signs than the smallest possible one",
                    count.above, count.windows));
  }
}

std::uint32_t alternating_partition(int n) { return 0xaaaaaaaau & ((1u << n) - 1); }

Check chelsea_theorem61() {
  return {
      .id = "chelsea.thm61",
      .paper = "Chelsea, arXiv 2506.11418, Theorem 6.1",
      .statement =
          "alternating tokens are the best bipartition for every similarity that decreases with distance and is convex",
      .method = "chelsea",
      .scope = Scope::once,
      .run = run_chelsea_theorem61};
}

}  // namespace kvbench::bounds
