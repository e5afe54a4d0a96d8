// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/cluster_cache.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>
#include <kvbench/methods/registry.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

using Uses = std::vector<ClusterUse>;

/// Steps at the positions 10, 11, ...
std::vector<ClusterStep> steps_of(const std::vector<Uses>& uses) {
  std::vector<ClusterStep> steps;
  for (std::size_t t = 0; t < uses.size(); ++t) {
    steps.push_back({static_cast<std::int32_t>(10 + t), static_cast<Index>(t), uses[t]});
  }
  return steps;
}

void check_hits(const CacheHits& hits, double tokens, double clusters, double belady) {
  CHECK(hits.tokens == Approx(tokens));
  CHECK(hits.clusters == Approx(clusters));
  CHECK(hits.belady == Approx(belady));
}
void check_none(const CacheHits& hits) {
  CHECK(std::isnan(hits.tokens));
  CHECK(std::isnan(hits.clusters));
  CHECK(std::isnan(hits.belady));
}

constexpr std::int32_t A = 7, B = 8, C = 20;  // ids need not begin at 0

/// The largest number of hits of any cache of `capacity` clusters over the steps from `window` on. `cache` = its
/// clusters before step t. After a step it keeps any subset of these and of the clusters that the step loaded.
int most_hits(const std::vector<unsigned>& steps, std::size_t t, unsigned cache, int capacity, std::size_t window) {
  if (t == steps.size()) return 0;
  const unsigned hand = cache | steps[t];
  int best = 0;
  for (unsigned kept = hand;; kept = (kept - 1) & hand) {
    if (std::popcount(kept) <= capacity) best = std::max(best, most_hits(steps, t + 1, kept, capacity, window));
    if (kept == 0) break;
  }
  return best + (t >= window ? std::popcount(cache & steps[t]) : 0);
}

/// The largest number of clusters that the window held before a counted step.
int window_capacity(const std::vector<unsigned>& steps, std::size_t window) {
  int largest = 0;
  for (std::size_t t = window; t < steps.size(); ++t) {
    unsigned held = 0;
    for (std::size_t s = t - window; s < t; ++s) held |= steps[s];
    largest = std::max(largest, std::popcount(held));
  }
  return largest;
}

}  // namespace

// A 2 B 1 | A 2 C 3 | B 1 C 2 | A 4 B 1.
// R = 1: A hits, C hits, B hits. Optimal with two places: B is kept over step 1 in place of A, so that step 2 hits
// twice. R = 2: the window before steps 2 and 3 holds A B C, all clusters hit.
TEST_CASE("clusters of the last R steps hit, by tokens, by clusters and in the optimal cache") {
  const auto steps = steps_of({{{A, 2}, {B, 1}}, {{A, 2}, {C, 3}}, {{B, 1}, {C, 2}}, {{A, 4}, {B, 1}}});
  const auto one = cache_hits(steps, 1);
  check_none(one[0]);
  check_hits(one[1], 2.0 / 5, .5, .5);
  check_hits(one[2], 2.0 / 3, .5, 1);
  check_hits(one[3], 1.0 / 5, .5, .5);
  const auto two = cache_hits(steps, 2);
  check_none(two[0]);
  check_none(two[1]);
  check_hits(two[2], 1, 1, 1);
  check_hits(two[3], 1, 1, 1);
  for (const CacheHits& hits : cache_hits(steps, 4)) check_none(hits);
}

TEST_CASE("after a missing position the cache is empty") {
  auto steps = steps_of({{{A, 1}}, {{A, 1}}, {{A, 1}}, {{A, 1}}});
  steps[2].position = 13;
  steps[3].position = 14;
  const auto hits = cache_hits(steps, 1);
  check_none(hits[0]);
  check_hits(hits[1], 1, 1, 1);
  check_none(hits[2]);
  check_hits(hits[3], 1, 1, 1);
  for (const CacheHits& none : cache_hits(steps, 2)) check_none(none);
  CHECK(cache_hits({}, 1).empty());
}

TEST_CASE("a step without clusters has no rate but counts as a step") {
  const auto steps = steps_of({{{A, 1}}, {}, {{A, 1}}, {{B, 3}}});
  const auto one = cache_hits(steps, 1);
  check_none(one[1]);
  check_hits(one[2], 0, 0, 1);  // one place: the optimal cache keeps A over the empty step
  check_hits(one[3], 0, 0, 0);
  const auto two = cache_hits(steps, 2);
  check_hits(two[2], 1, 1, 1);
  check_hits(two[3], 0, 0, 0);
}

TEST_CASE("the optimal cache has the largest number of hits of any cache of its size") {
  int runs = 0, beyond_window = 0;
  for (std::uint32_t stream = 0; stream < 300; ++stream) {
    const std::size_t length = 3 + stream % 4;
    std::vector<unsigned> masks;
    std::vector<Uses> uses;
    for (std::uint32_t t = 0; t < length; ++t) {
      const PhiloxBlock words = philox4x32({{stream, t, 0, 0}}, {1, 2});
      masks.push_back(words.x[0] & words.x[1] >> (stream % 3) & 15u);
      uses.emplace_back();
      for (std::int32_t c = 0; c < 4; ++c) {
        if ((masks.back() >> c & 1u) != 0) uses.back().push_back({c, 1});
      }
    }
    for (const std::size_t window : {1u, 2u}) {
      const auto hits = cache_hits(steps_of(uses), static_cast<Index>(window));
      double best = 0, recent = 0;
      for (std::size_t t = window; t < length; ++t) {
        if (masks[t] == 0) continue;
        best += hits[t].belady * std::popcount(masks[t]);
        recent += hits[t].clusters * std::popcount(masks[t]);
      }
      CHECK(best == Approx(most_hits(masks, 0, 0, window_capacity(masks, window), window)));
      CHECK(best >= recent - 1e-9);
      beyond_window += best > recent + .5;
      ++runs;
    }
  }
  CHECK(runs == 600);
  CHECK(beyond_window > 50);
}

// Table 0 has no clusters, table 1 has rows by query: query 0 reads 1 2 4 (cluster 5 5 -), query 1 reads 3 2 5 (9 5 5).
TEST_CASE("a step counts the visible tokens of each cluster") {
  EntryTable table{.per_query = true,
                   .ids = ref().adopt(std::vector<TokenId>{1, 2, 4, 3, 2, 5}, 2, 3),
                   .cluster_ids = ref().adopt(std::vector<std::int32_t>{5, 5, -1, 9, 5, 5}, 2, 3)};
  const EntryTable sinks{.ids = ref().adopt(std::vector<TokenId>{0}, 1, 1)};
  CHECK_FALSE(host_entries({sinks}, 2, ref()).has_clusters());
  const HostEntries entries = host_entries({sinks, table}, 2, ref());
  CHECK(entries.has_clusters());
  const auto check = [](const ClusterStep& step, const Uses& expected) {
    REQUIRE(step.clusters.size() == expected.size());
    for (std::size_t c = 0; c < expected.size(); ++c) {
      CHECK(step.clusters[c].cluster == expected[c].cluster);
      CHECK(step.clusters[c].tokens == expected[c].tokens);
    }
  };
  check(cluster_step(entries, 0, 0, 0, 10), {{5, 2}});
  check(cluster_step(entries, 0, 1, 0, 10), {{5, 2}, {9, 1}});
  check(cluster_step(entries, 0, 1, 0, 5), {{5, 1}, {9, 1}});  // token 5 is not visible yet
}

// The cluster of position t is t / 2, with one token: at R = 1 odd positions hit, at R = 2 and 4 they do, even ones
// never.
TEST_CASE("a replay sets hit rates for methods with clusters and NaN for others") {
  const SmallTrace trace;
  const MethodInfo halves = answering("halves", [](const QueryBlock& queries, Backend& backend) {
    const Index m = queries.size();
    std::vector<std::int32_t> groups;
    for (const std::int32_t position : queries.positions) groups.push_back(position / 2);
    return EntryTables{{.per_query = true,
                        .ids = backend.adopt(std::vector<TokenId>(static_cast<std::size_t>(m), 3), m, 1),
                        .cluster_ids = backend.adopt(std::move(groups), m, 1)}};
  });
  const ReplayResults results = replay::replay(trace.reader(), request_of({&halves, &find_method("sink")}, 7), serial);
  const std::map<Metric, Index> windows = {
      {metric("cache_hit_r1"), 1},          {metric("cache_hit_r2"), 2},          {metric("cache_hit_r4"), 4},
      {metric("cache_hit_r1_clusters"), 1}, {metric("cache_hit_r2_clusters"), 2}, {metric("cache_hit_r4_clusters"), 4},
      {metric("cache_hit_r1_belady"), 1},   {metric("cache_hit_r2_belady"), 2},   {metric("cache_hit_r4_belady"), 4}};
  for (const HeadResult& head : results.heads) {
    const std::size_t m = head.positions.size();
    REQUIRE(m == 12);
    REQUIRE(head.results[0].metrics.size() == 2 * m);
    for (std::size_t row = 0; row < 2 * m; ++row) {
      for (const auto& [which, window] : windows) {
        const float hit = metric(head.results[0], row, which);
        if (static_cast<Index>(row % m) < window) {
          CHECK(std::isnan(hit));
        } else {
          CHECK(hit == static_cast<float>(head.positions[row % m] % 2));
        }
        CHECK(std::isnan(metric(head.results[1], row, which)));
      }
    }
  }
}
