// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/cluster_cache.hpp>

#include <cmath>
#include <map>

#include <doctest/doctest.h>

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

/// NAN: no rate.
void check(const std::vector<double>& hits, const std::vector<double>& expected) {
  REQUIRE(hits.size() == expected.size());
  for (std::size_t t = 0; t < hits.size(); ++t) {
    CHECK(std::isnan(hits[t]) == std::isnan(expected[t]));
    if (!std::isnan(expected[t])) CHECK(hits[t] == Approx(expected[t]));
  }
}

constexpr std::int32_t A = 7, B = 8, C = 20;  // ids need not begin at 0

}  // namespace

// A 2 B 1 | A 2 C 3 | B 1 C 2 | A 4 B 1.
// R = 1: A hits, C hits, B hits. R = 2: the window before steps 2 and 3 holds A B C, all clusters hit.
TEST_CASE("tokens of clusters that the last R steps selected hit") {
  const auto steps = steps_of({{{A, 2}, {B, 1}}, {{A, 2}, {C, 3}}, {{B, 1}, {C, 2}}, {{A, 4}, {B, 1}}});
  check(cache_hits(steps, 1), {NAN, 2.0 / 5, 2.0 / 3, 1.0 / 5});
  check(cache_hits(steps, 2), {NAN, NAN, 1, 1});
  check(cache_hits(steps, 4), {NAN, NAN, NAN, NAN});
}

TEST_CASE("after a missing position the cache is empty") {
  auto steps = steps_of({{{A, 1}}, {{A, 1}}, {{A, 1}}, {{A, 1}}});
  steps[2].position = 13;
  steps[3].position = 14;
  check(cache_hits(steps, 1), {NAN, 1, NAN, 1});
  check(cache_hits(steps, 2), {NAN, NAN, NAN, NAN});
  CHECK(cache_hits({}, 1).empty());
}

TEST_CASE("a step without clusters has no rate but counts as a step") {
  const auto steps = steps_of({{{A, 1}}, {}, {{A, 1}}, {{B, 3}}});
  check(cache_hits(steps, 1), {NAN, NAN, 0, 0});
  check(cache_hits(steps, 2), {NAN, NAN, 1, 0});
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
      {Metric::cache_hit_r1, 1}, {Metric::cache_hit_r2, 2}, {Metric::cache_hit_r4, 4}};
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
