// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include <support/small.hpp>

#include <kvbench/methods/retrieval/estimated_clusters.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Row = std::vector<double>;

double dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// The clustering, written out: the tokens of each cluster that has some.
std::vector<Ids> clusters_by_rule(const HeadData& head, Index first, Index n, Index count, Index segments,
                                  Index iterations) {
  std::vector<Row> keys;
  Row mean(static_cast<std::size_t>(head.d), 0);
  for (Index j = 0; j < n; ++j) {
    const auto key = head.keys.begin() + (first + j) * head.d;
    keys.emplace_back(key, key + head.d);
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += keys.back()[c] / static_cast<double>(n);
  }
  for (Row& key : keys) {
    for (std::size_t c = 0; c < mean.size(); ++c) key[c] -= mean[c];
  }
  std::vector<Row> centroids;
  for (Index c = 0; c < count; ++c)
    centroids.push_back(keys[static_cast<std::size_t>((static_cast<double>(c) + 0.5) * static_cast<double>(n) /
                                                      static_cast<double>(count))]);
  const auto best = [&](const Row& key, Index from, Index to) {
    Index found = from;
    for (Index c = from; c < to; ++c) {
      if (dot(key, centroids[static_cast<std::size_t>(c)]) > dot(key, centroids[static_cast<std::size_t>(found)]))
        found = c;
    }
    return static_cast<std::size_t>(found);
  };
  const Index length = n / segments, share = count / segments;
  for (Index i = 0; i < iterations; ++i) {
    std::vector<Row> sums(centroids.size(), Row(mean.size(), 0));
    std::vector<int> members(centroids.size(), 0);
    for (Index j = 0; j < segments * length; ++j) {
      const Index s = j / length;
      const std::size_t c = best(keys[static_cast<std::size_t>(j)], s * share, (s + 1) * share);
      ++members[c];
      for (std::size_t x = 0; x < mean.size(); ++x) sums[c][x] += keys[static_cast<std::size_t>(j)][x];
    }
    for (std::size_t c = 0; c < centroids.size(); ++c) {
      if (members[c] == 0) continue;
      const double norm = std::sqrt(dot(sums[c], sums[c]));
      for (double& x : sums[c]) x /= norm;
      centroids[c] = sums[c];
    }
  }
  std::vector<Ids> clusters(centroids.size());
  for (Index j = 0; j < n; ++j)
    clusters[best(keys[static_cast<std::size_t>(j)], 0, count)].push_back(static_cast<TokenId>(first + j));
  std::erase_if(clusters, [](const Ids& ids) { return ids.empty(); });
  return clusters;
}

}  // namespace

// Keys 1 2 9 10 with the mean 5.5: -4.5 -3.5 3.5 4.5. Two centroids start at the tokens in the middle of the halves, 1
// and 3, and have the sides as clusters: means 1.5 and 9.5, values 1.5 and 6.
TEST_CASE("segmented clusters are sides of the mean where there is one channel") {
  const auto keys = ref().adopt(std::vector<float>{1, 2, 9, 10}, 4),
             values = ref().adopt(std::vector<float>{1, 2, 4, 8}, 4);
  for (const Index iterations : {Index{0}, Index{9}, Index{1} << 40}) {  // labels are fixed after one
    const EstimatedClusters clusters = segmented_clusters(keys, values, 3, 2, 1, iterations, ref());
    CHECK(clusters.tokens == std::vector<Ids>{{3, 4}, {5, 6}});
    CHECK(ref().read(clusters.centroids) == std::vector<float>{1.5f, 9.5f});
    CHECK(ref().read(clusters.values) == std::vector<float>{1.5f, 6});
  }
}

// Tokens 0 and 7 answer every query. The others are two clusters with the centroids -2 and 1, of which the query 1
// prefers the second. Of a budget of 6 the half of 4 is for estimates: 2 entries are left, and the cluster of 3 tokens
// does not fit, so that both are estimated. With 7 and a share of 0.25 one entry is an estimate, the cluster of the
// tokens 1, 2, 3; with 8 all tokens are read.
TEST_CASE("retroinfer reads the best clusters and estimates those that follow") {
  const HeadData head = small_head({0, -1, -2, -3, 1, 1, 1, 0, 0}, 8);
  const QueryBlock block = query_block(head, 8, 9, 9, ref());
  const auto entries = [&](Index budget, const char* estimated) {
    const auto cache = open_cache(
        "retroinfer", {{"sinks", "1"}, {"window", "1"}, {"tokens_per_cluster", "4"}, {"estimated", estimated}},
        prompt_of(head, ref()), budget, 0);
    return visible_entries(head, cache->entries(block), block, ref())[0];
  };
  const auto both = entries(6, "0.5");
  CHECK(ids_of(both) == Ids{0, 3, 6, 7});
  CHECK(both[1].num == 3);
  CHECK(both[1].den == 3);
  CHECK(both[1].key == std::vector<float>{-2});
  CHECK(both[1].value.at(0) == doctest::Approx((2 + 4 + 8) / 3.0));
  const auto one = entries(7, "0.25");
  CHECK(ids_of(one) == Ids{0, 3, 4, 5, 6, 7});
  CHECK(one[1].den == 3);
  CHECK(one[2].den == 1);
  CHECK(ids_of(entries(7, "0")) == Ids{0, 4, 5, 6, 7});
  CHECK(ids_of(entries(8, "0.5")) == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_THROWS_WITH_AS(open_cache("retroinfer", {{"least", "9"}}, prompt_of(head, ref()), 6, 0),
                       "retroinfer leaves contexts below 9 tokens whole, and this one has 8; lower retroinfer.least",
                       Infeasible);
}

TEST_CASE("retroinfer holds what its rule says") {
  const HeadData head = random_head({.n = 64, .decoded = 3, .group = 2}, 51, ref());
  // 59 tokens between 2 first and 3 last ones; round(64 / 32) = 2 segments, 16 clusters.
  const auto cache =
      open_cache("retroinfer",
                 {{"sinks", "2"}, {"window", "3"}, {"tokens_per_cluster", "4"}, {"segment", "32"}, {"iterations", "4"}},
                 prompt_of(head, ref()), 30, 0);
  const auto clusters = clusters_by_rule(head, 2, 59, 16, 2, 4);
  const QueryBlock block = query_block(head, 64, 67, 67, ref());
  const auto entries = visible_entries(head, cache->entries(block), block, ref());
  for (Index i = 0; i < 3; ++i) {
    std::vector<double> rank(clusters.size(), 0);
    for (Index g = 0; g < 2; ++g) {
      std::vector<double> row;
      for (const Ids& ids : clusters) {
        double logit = 0;
        for (const TokenId id : ids) {
          for (Index c = 0; c < head.d; ++c)
            logit +=
                static_cast<double>(head.queries[static_cast<std::size_t>((g * head.total + 64 + i) * head.d + c)]) *
                static_cast<double>(head.keys[static_cast<std::size_t>(id * head.d + c)]) /
                static_cast<double>(ids.size());
        }
        row.push_back(std::exp(logit * static_cast<double>(head.scale)));
      }
      const double sum = std::accumulate(row.begin(), row.end(), 0.0);
      for (std::size_t c = 0; c < row.size(); ++c) rank[c] += row[c] / sum;
    }
    std::vector<std::size_t> order(clusters.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t c) { return rank[c]; });
    Ids expected = {0, 1, 61, 62, 63};
    Index left = 25 - 11;  // int(0.446 * 25) entries are estimates
    std::size_t next = 0;
    for (; next < order.size() && std::ssize(clusters[order[next]]) <= left; ++next) {
      left -= std::ssize(clusters[order[next]]);
      expected.insert(expected.end(), clusters[order[next]].begin(), clusters[order[next]].end());
    }
    for (Index e = 0; e < 11 && next < order.size(); ++e, ++next) expected.push_back(clusters[order[next]].back());
    std::ranges::sort(expected);
    for (const Index r : {i, 3 + i}) CHECK(ids_of(entries[static_cast<std::size_t>(r)]) == expected);
  }
}

// A window of 1 and 3 decoded tokens make 4: with the next one the first 3 of them become a cluster, so that the
// prompt's last token may be read no more.
TEST_CASE("retroinfer clusters decoded tokens as soon as there are enough") {
  const HeadData head = small_head({0, -1, -1, 5, -9, -9, 5, 5, 5}, 4);
  const auto cache = open_cache("retroinfer", {{"sinks", "1"}, {"window", "1"}, {"update", "3"}, {"estimated", "0"}},
                                prompt_of(head, ref()), 4, 0);
  const auto answers = [&](Index t) { return answering(*cache, query_block(head, t, t + 1, t + 1, ref()), head); };
  CHECK(append(*cache, token_block(head, 4, 9, ref())) == 3);
  CHECK(answers(6) == Ids{0, 1, 2, 3, 4, 5, 6});
  CHECK(cache->protected_tokens().decoded);
  CHECK(append(*cache, token_block(head, 7, 9, ref())) == 2);
  CHECK(!cache->protected_tokens().decoded);
  CHECK(answers(8) == Ids{0, 1, 2, 6, 7, 8});  // the cluster of 3 4 5 has the mean -13/3, and 2 tokens fit
  CHECK(cache->footprint()[4].rows == 2);
}
