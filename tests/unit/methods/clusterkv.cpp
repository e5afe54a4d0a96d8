// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Tokens 0 .. 6 of the context and 7 after it, d = 2. Token 0 is the sink; 1 3 6 point along x, their mean is (2, 0);
/// 2 4 5 point along y, their mean is (0, 2). Any two initial centroids lead to these clusters: where both are along x,
/// cluster 0 takes all tokens at first (ties, then the cosine 0 of the others), its mean (1, 1) leaves the tokens along
/// x to the other cluster, and no label changes after that.
HeadData two_directions(std::vector<float> query, Index group = 1) {
  HeadData head{.n = 7, .total = 8, .d = 2, .dv = 1, .group = group};
  head.keys = {5, 5, 1, 0, 0, 1, 3, 0, 0, 3, 0, 2, 2, 0, 1, 1};
  for (Index j = 0; j < head.total; ++j) head.values.push_back(static_cast<float>(1 << j));
  for (Index g = 0; g < group; ++g) {
    for (Index t = 0; t < head.total; ++t) {
      head.queries.insert(head.queries.end(), query.begin() + 2 * g, query.begin() + 2 * g + 2);
    }
  }
  return head;
}

std::vector<Assignment> small(std::vector<Assignment> more = {}) {
  std::vector<Assignment> settings = {{"sinks", "1"}, {"clusters", "2"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// Tokens that answer the query at position 7, head `row`, with the context only.
Ids recalled(const std::string& method, const HeadData& head, Index budget, const std::vector<Assignment>& settings,
             std::size_t row = 0, std::uint32_t seed = 0) {
  const auto cache = open_cache(method, settings, prompt_of(head, ref()), budget, seed);
  return answering(*cache, query_block(head, 7, 8, 8, ref()), head, row);
}

}  // namespace

// Query (1, .1): x scores 2, y scores .2.
TEST_CASE("clusterkv takes the best clusters until the budget is full, and the earliest tokens of the last one") {
  const HeadData head = two_directions({1, .1f});
  for (const char* method : {"clusterkv", "clusterkv-repo"}) {
    for (const std::uint32_t seed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
      const auto with = [&](Index budget) { return recalled(method, head, budget, small(), 0, seed); };
      CHECK(with(1) == Ids{0});
      CHECK(with(3) == Ids{0, 1, 3});
      CHECK(with(4) == Ids{0, 1, 3, 6});
      CHECK(with(6) == Ids{0, 1, 2, 3, 4, 6});
      CHECK(with(7) == Ids{0, 1, 2, 3, 4, 5, 6});
      CHECK(with(50) == Ids{0, 1, 2, 3, 4, 5, 6});
    }
  }
}

// Query (-1, -.1): x scores -2, y scores -.2. A selection that pads its scores with a small positive number loses both.
TEST_CASE("clusterkv ranks negative scores") {
  const HeadData head = two_directions({-1, -.1f});
  CHECK(recalled("clusterkv", head, 3, small()) == Ids{0, 2, 4});
  CHECK(recalled("clusterkv", head, 5, small()) == Ids{0, 1, 2, 4, 5});
  CHECK(recalled("clusterkv-repo", head, 4, small({{"clusters", "400"}})) == Ids{0, 2, 4, 5});
}

TEST_CASE("clusterkv fill=pad takes the last cluster whole") {
  const HeadData head = two_directions({1, .1f});
  const auto with = [&](Index budget) { return recalled("clusterkv", head, budget, small({{"fill", "pad"}})); };
  CHECK(with(1) == Ids{0});
  CHECK(with(2) == Ids{0, 1, 3, 6});
  CHECK(with(4) == Ids{0, 1, 3, 6});
  CHECK(with(5) == Ids{0, 1, 2, 3, 4, 5, 6});
}

// Queries (1, 0) of head 0 and (0, 3) of head 1: products 2 0 and 0 6, mean 1 3, so that the query group takes y.
TEST_CASE("clusterkv ranks per query head or per query group") {
  const HeadData head = two_directions({1, 0, 0, 3}, 2);
  CHECK(recalled("clusterkv", head, 4, small(), 0) == Ids{0, 1, 3, 6});
  CHECK(recalled("clusterkv", head, 4, small(), 1) == Ids{0, 2, 4, 5});
  for (const std::size_t row : {0, 1}) {
    CHECK(recalled("clusterkv", head, 4, small({{"per", "kv_head"}}), row) == Ids{0, 2, 4, 5});
  }
}

TEST_CASE("clusterkv reports the cluster of each recalled token and none for sinks") {
  const HeadData head = two_directions({1, .1f});
  const auto cache = open_cache("clusterkv", small(), prompt_of(head, ref()), 5, 0);
  const EntryTables tables = cache->entries(query_block(head, 7, 8, 8, ref()));
  REQUIRE(tables.size() == 2);
  CHECK_FALSE(tables[0].cluster_ids.present());
  const auto ids = ref().read(tables[1].ids), groups = ref().read(tables[1].cluster_ids);
  CHECK(ids == Ids{1, 3, 6, 2});
  CHECK(groups[0] == groups[1]);
  CHECK(groups[0] == groups[2]);
  CHECK(std::set<std::int32_t>{groups[0], groups[3]} == std::set<std::int32_t>{0, 1});
}

// 160 tokens with the sinks, 80 per cluster: 2 clusters, although only 144 tokens are clustered. A shorter prompt has
// one.
TEST_CASE("clusterkv has one cluster per 80 tokens of the prompt, sinks included") {
  const auto clusters = [&](Index n, std::vector<Assignment> settings) {
    const HeadData head = random_head({.n = n}, 0, ref());
    return open_cache("clusterkv", settings, prompt_of(head, ref()), 40, 0)->footprint()[4].rows;
  };
  CHECK(clusters(160, {}) == 2);
  CHECK(clusters(159, {}) == 1);
  CHECK(clusters(20, {}) == 1);
  CHECK(clusters(16, {}) == 0);
  CHECK(clusters(160, {{"clusters", "7"}}) == 7);
  CHECK(clusters(20, {{"clusters", "7"}}) == 4);
}

// Keys 1 1 | 3 3 5 5 4, all queries 1, every = 2: tokens 2 3 become a cluster of centroid 3 after the query at 3,
// tokens 4 5 one of centroid 5 after the query at 5. The budget of two tokens is a whole cluster.
TEST_CASE("clusterkv clusters `every` decoded tokens separately, after the query of the last of them") {
  const HeadData head = small_head({1, 1, 3, 3, 5, 5, 4}, 2);
  const auto cache =
      open_cache("clusterkv", {{"sinks", "0"}, {"every", "2"}, {"added", "1"}}, prompt_of(head, ref()), 2, 0);
  const auto at = [&](Index position) {
    return answering(*cache, query_block(head, position, position + 1, position + 1, ref()), head);
  };
  CHECK(append(*cache, token_block(head, 2, 7, ref())) == 2);
  CHECK(at(2) == Ids{0, 1, 2});
  CHECK(at(3) == Ids{0, 1, 2, 3});
  CHECK(cache->protected_tokens().decoded);

  CHECK(append(*cache, token_block(head, 4, 5, ref())) == 1);
  CHECK(at(4) == Ids{2, 3, 4});
  CHECK_FALSE(cache->protected_tokens().decoded);
  CHECK(append(*cache, token_block(head, 5, 7, ref())) == 1);
  CHECK(at(5) == Ids{2, 3, 4, 5});
  CHECK(append(*cache, token_block(head, 6, 7, ref())) == 1);
  CHECK(at(6) == Ids{4, 5, 6});

  const EntryTables tables = cache->entries(query_block(head, 6, 7, 7, ref()));
  CHECK(ref().read(tables[0].cluster_ids) == std::vector<std::int32_t>{2, 2});
}

TEST_CASE("clusterkv-repo answers with every generated token and clusters none") {
  const HeadData head = random_head({.n = 20, .decoded = 700, .d = 2}, 0, ref());
  const auto cache = open_cache("clusterkv-repo", {}, prompt_of(head, ref()), 18, 0);
  CHECK(append(*cache, token_block(head, 20, 720, ref())) == 700);
  const Ids ids = answering(*cache, query_block(head, 719, 720, 720, ref()), head);
  CHECK(ids.size() == 18 + 700);
  CHECK(ids[18] == 20);
  CHECK(cache->protected_tokens().decoded);
  // By default clusterkv stops for a clustering after 320.
  const auto paper = open_cache("clusterkv", {}, prompt_of(head, ref()), 18, 0);
  CHECK(append(*paper, token_block(head, 20, 720, ref())) == 320);
  CHECK(append(*paper, token_block(head, 340, 720, ref())) == 320);
  CHECK(append(*paper, token_block(head, 660, 720, ref())) == 60);
  CHECK(paper->footprint()[4].rows == 1 + 4 + 4);
}

TEST_CASE("clusterkv reports how often its clustering stopped at the cap") {
  const HeadData head = random_head({.n = 200, .decoded = 10}, 0, ref());
  const auto notes = [&](const char* iterations) {
    const auto cache =
        open_cache("clusterkv", {{"iterations", iterations}, {"clusters", "20"}, {"every", "5"}, {"added", "5"}},
                   prompt_of(head, ref()), 40, 0);
    append(*cache, token_block(head, 200, 205, ref()));
    append(*cache, token_block(head, 205, 210, ref()));
    return cache->notes();
  };
  // Labels of five tokens in five clusters are fixed at once, those of 184 tokens in twenty clusters are not.
  REQUIRE(notes("1").size() == 1);
  CHECK(notes("1")[0].count == 1);
  CHECK(notes("300").empty());
}
