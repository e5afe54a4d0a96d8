// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;

Settings pages_of(const char* page, Settings more = {}) {
  more.insert(more.begin(), {{"page", page}, {"min_pages", "1"}});
  return more;
}

std::vector<std::int32_t> groups_of(const EntryTables& tables) { return ref().read(tables[0].cluster_ids); }

}  // namespace

// d = 2, pages of two tokens. Page 0 holds (3, -1) and (-1, 3): its extremes are 3 3 and -1 -1. Page 1 holds (2, 2) and
// (0, 0), page 2 twice (1, 1). Bounds for the query (1, 1): 6 4 2, although page 1 has the largest logit, 4, and page 0
// only 2. For (1, -1): 3 + 1 = 4, 2 - 0 = 2, 1 - 1 = 0. For (-1, -1): 2, 0, -2.
TEST_CASE("quest ranks pages by channel-wise bounds") {
  HeadData head{.n = 6, .total = 7, .d = 2, .dv = 1, .group = 3};
  head.keys = {3, -1, -1, 3, 2, 2, 0, 0, 1, 1, 1, 1, 0, 0};
  head.values = {1, 2, 3, 4, 5, 6, 7};
  head.queries.assign(3 * 7 * 2, 1);
  for (std::size_t i = 0; i < 7; ++i) {
    head.queries[14 + 2 * i + 1] = -1;
    head.queries[28 + 2 * i] = head.queries[28 + 2 * i + 1] = -1;
  }
  const QueryBlock block = query_block(head, 6, 7, 7, ref());
  const auto best = [&](Index budget, std::size_t row) {
    return answering(*open_cache("quest", pages_of("2"), prompt_of(head, ref()), budget, 0), block, head, row);
  };

  for (std::size_t row = 0; row < 3; ++row) {
    CHECK(best(2, row) == Ids{0, 1});
    CHECK(best(3, row) == Ids{0, 1});
    CHECK(best(4, row) == Ids{0, 1, 2, 3});
    CHECK(best(6, row) == Ids{0, 1, 2, 3, 4, 5});
  }
}

// Query 1 bounds pages by their largest key, query -1 by the negative of their smallest: 5 3 4 and 0 -3 -4.
TEST_CASE("quest selects per query head, or per kv head by their mean") {
  HeadData head = small_head({5, 0, 3, 3, 4, 4, 0}, 6, 2);
  for (std::size_t i = 7; i < 14; ++i) head.queries[i] = -1;
  const QueryBlock block = query_block(head, 6, 7, 7, ref());
  const auto best = [&](Settings more, std::size_t row) {
    const auto cache = open_cache("quest", pages_of("2", std::move(more)), prompt_of(head, ref()), 4, 0);
    return answering(*cache, block, head, row);
  };
  CHECK(best({}, 0) == Ids{0, 1, 4, 5});
  CHECK(best({}, 1) == Ids{0, 1, 2, 3});
  for (std::size_t row = 0; row < 2; ++row) {
    CHECK(best({{"per", "kv_head"}}, row) == Ids{0, 1, 2, 3});  // 2.5 0 0: the lower page
    CHECK(best({{"per", "kv_head"}, {"reduce", "max"}}, row) == Ids{0, 1, 4, 5});
  }
}

// Pages of four, one of them a query. Token 10, the third of the page 8 .. 11, has a key of 100: it must not
// affect the queries at 8 and 9, but those at 10 and 11.
TEST_CASE("the bounds of the open page of quest cover the visible tokens of the query") {
  const HeadData head = small_head({5, 1, 1, 1, 3, 3, 3, 3, 0, 0, 100, 0, 1}, 8);
  const auto cache = open_cache("quest", pages_of("4"), prompt_of(head, ref()), 4, 0);
  CHECK(append(*cache, token_block(head, 8, 13, ref())) == 4);  // to the end of the page
  const QueryBlock block = query_block(head, 8, 12, 12, ref());
  CHECK(answering(*cache, block, head, 0) == Ids{0, 1, 2, 3});
  CHECK(answering(*cache, block, head, 1) == Ids{0, 1, 2, 3});
  CHECK(answering(*cache, block, head, 2) == Ids{8, 9, 10});
  CHECK(answering(*cache, block, head, 3) == Ids{8, 9, 10, 11});

  CHECK(append(*cache, token_block(head, 12, 13, ref())) == 1);
  const QueryBlock next = query_block(head, 12, 13, 13, ref());
  CHECK(answering(*cache, next, head) == Ids{8, 9, 10, 11});
  const QueryBlock past = query_block(head, 11, 12, 13, ref());
  CHECK_THROWS_AS(cache->entries(past),
                  std::logic_error);  // its bounds have been overwritten, and later bounds must not answer it
}

TEST_CASE("a page of quest that the context ends in continues with decoded tokens") {
  const HeadData head = small_head({1, 1, 1, 1, 2, 9, 3, 0, 1, 1}, 6);
  const auto cache = open_cache("quest", pages_of("4"), prompt_of(head, ref()), 4, 0);
  const QueryBlock first = query_block(head, 6, 7, 7, ref());
  CHECK(answering(*cache, first, head) == Ids{4, 5});  // prefill: the context's tokens only
  CHECK(append(*cache, token_block(head, 6, 10, ref())) == 2);
  const QueryBlock block = query_block(head, 6, 8, 8, ref());
  CHECK(answering(*cache, block, head, 0) == Ids{4, 5, 6});
  CHECK(answering(*cache, block, head, 1) == Ids{4, 5, 6, 7});
  const auto groups = groups_of(cache->entries(block));
  CHECK(groups == std::vector<std::int32_t>{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(append(*cache, token_block(head, 8, 10, ref())) == 2);
  CHECK(answering(*cache, query_block(head, 8, 10, 10, ref()), head, 1) == Ids{4, 5, 6, 7});
}

TEST_CASE("quest starts from an empty context") {
  const HeadData head = small_head({1, 5, 0, 2, 3, 0}, 0);
  const auto cache = open_cache("quest", pages_of("2"), prompt_of(head, ref()), 2, 0);
  CHECK(cache->entries(query_block(head, 0, 1, 1, ref())).empty());
  std::vector<Ids> kept;
  for (Index t = 0; t < 6;) {
    const Index end = t + append(*cache, token_block(head, t, 6, ref()));
    const QueryBlock block = query_block(head, t, end, end, ref());
    for (std::size_t i = 0; i < static_cast<std::size_t>(end - t); ++i) {
      kept.push_back(answering(*cache, block, head, i));
    }
    t = end;
  }
  CHECK(kept == std::vector<Ids>{{0}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}});
}

TEST_CASE("quest always takes the newest page, or only where its bound is among the best") {
  const HeadData head = small_head({5, 5, 4, 4, 3, 3, -9, 0}, 7);
  const QueryBlock block = query_block(head, 7, 8, 8, ref());
  const auto kept = [&](const char* last, Index budget) {
    const auto cache = open_cache("quest", pages_of("2", {{"last_page", last}}), prompt_of(head, ref()), budget, 0);
    return answering(*cache, block, head);
  };
  CHECK(kept("false", 4) == Ids{0, 1, 2, 3});
  CHECK(kept("true", 4) == Ids{0, 1, 6});
  CHECK(kept("true", 2) == Ids{6});
  CHECK(kept("true", 6) == Ids{0, 1, 2, 3, 6});
}

// The released code pads with zeros or smallest floats in some places; the selection must not depend on the sign of a
// bound.
TEST_CASE("quest ranks negative bounds, and breaks ties by the lower page") {
  const HeadData head = small_head({-9, -9, -2, -3, -4, -2, 0}, 6);
  const QueryBlock block = query_block(head, 6, 7, 7, ref());
  const auto cache = open_cache("quest", pages_of("2"), prompt_of(head, ref()), 2, 0);
  CHECK(answering(*cache, block, head) == Ids{2, 3});  // -9 -2 -2
}

TEST_CASE("quest takes three pages at least, and a budget that holds all tokens loses none of them") {
  const HeadData head = small_head({8, 7, 6, 5, 4, 3, 2, 0}, 7);
  const QueryBlock block = query_block(head, 7, 8, 8, ref());
  CHECK_THROWS_WITH_AS(open_cache("quest", {{"page", "2"}}, prompt_of(head, ref()), 5, 0),
                       "quest reads at least 3 pages of 2 tokens, more than the budget of 5 tokens; raise the budget, "
                       "or lower quest.min_pages or quest.page",
                       Infeasible);
  const auto six = open_cache("quest", {{"page", "2"}}, prompt_of(head, ref()), 6, 0);
  CHECK(answering(*six, block, head) == Ids{0, 1, 2, 3, 4, 5});
  const auto seven = open_cache("quest", {{"page", "2"}}, prompt_of(head, ref()), 7, 0);
  CHECK(answering(*seven, block, head) == Ids{0, 1, 2, 3, 4, 5, 6});  // 7 / 2 pages would be three of four
}

namespace {

/// What twilight keeps of these tokens by the rule, written out, for the query row r of the block.
Ids pruned(const HeadData& head, const Ids& candidates, Index r, Index m, Index position, double p) {
  const float* const query = head.queries.data() + ((r / m) * head.total + position) * head.d;
  std::vector<std::pair<double, TokenId>> weights;
  double sum = 0;
  for (const TokenId id : candidates) {
    const float* const key = head.keys.data() + id * head.d;
    const float low = *std::min_element(key, key + head.d), high = *std::max_element(key, key + head.d);
    const float step = (high - low) / 15;
    double logit = 0;
    for (Index c = 0; c < head.d; ++c) {
      const double code = step > 0 ? std::nearbyint((key[c] - low) / step) : 0;
      logit += static_cast<double>(query[c]) * (code * static_cast<double>(step) + static_cast<double>(low));
    }
    weights.emplace_back(-std::exp(logit * static_cast<double>(head.scale)), id);
    sum -= weights.back().first;
  }
  std::ranges::sort(weights);
  Ids kept;
  double taken = 0;
  for (const auto& [weight, id] : weights) {
    if (!kept.empty() && taken >= p * sum) break;
    kept.push_back(id);
    taken -= weight;
  }
  std::ranges::sort(kept);
  return kept;
}

}  // namespace

// One channel has no range, so that keys of 4 bits are the keys. Pages of two tokens have the bounds 8 4 1 of weights
// 8 4, 4 2, 1 1; with a budget of 4 quest takes the first two. Of 18 the tokens 0 and 1 are 2/3, with 2 they are 16/18.
TEST_CASE("twilight keeps the tokens that hold a share of the attention to those of quest") {
  const HeadData head = small_head(logs({8, 4, 4, 2, 1, 1, 1}), 6);
  const QueryBlock block = query_block(head, 6, 7, 7, ref());
  const auto kept = [&](const char* p, Index budget) {
    const auto cache =
        open_cache("twilight", {{"p", p}, {"page", "2"}, {"min_pages", "1"}}, prompt_of(head, ref()), budget, 0);
    return answering(*cache, block, head);
  };
  CHECK(kept("0.4", 4) == Ids{0});
  CHECK(kept("0.6", 4) == Ids{0, 1});
  CHECK(kept("0.7", 4) == Ids{0, 1, 2});
  CHECK(kept("0.95", 4) == Ids{0, 1, 2, 3});
  CHECK(kept("1", 4) == Ids{0, 1, 2, 3});
  CHECK(kept("0", 4) == Ids{0});
  CHECK(kept("0.89", 6) == Ids{0, 1, 2, 3});  // 18 of 20
  CHECK(kept("0.91", 6) == Ids{0, 1, 2, 3, 4});
}

// Keys (0, 15, 0.4) and (0, 14, 1.5): in steps of 1 and of 14/15 the last channels are 0 and 1.6 -> 2 steps. The query
// (0, 0, 1) then prefers the second by 1.87 instead of 1.1: its share is 0.87 and no longer 0.75.
TEST_CASE("twilight estimates attention with keys in 4 bits") {
  HeadData head{.n = 2, .total = 3, .d = 3, .dv = 1};
  head.keys = {0, 15, 0.4f, 0, 14, 1.5f, 0, 0, 0};
  head.values = {1, 2, 3};
  head.queries = {0, 0, 1, 0, 0, 1, 0, 0, 1};
  const auto cache =
      open_cache("twilight", {{"p", "0.8"}, {"page", "1"}, {"min_pages", "1"}}, prompt_of(head, ref()), 2, 0);
  CHECK(answering(*cache, query_block(head, 2, 3, 3, ref()), head) == Ids{1});
}

TEST_CASE("twilight prunes what quest selects, in prefill and decode") {
  const HeadData head = random_head({.n = 40, .decoded = 7, .group = 2}, 31, ref());
  for (const char* per : {"query_head", "kv_head"}) {
    const std::vector<Assignment> pages = {{"page", "4"}, {"min_pages", "1"}, {"per", per}};
    std::vector<Assignment> settings = pages;
    settings.push_back({"p", "0.6"});
    const auto quest = open_cache("quest", pages, prompt_of(head, ref()), 20, 0);
    const auto twilight = open_cache("twilight", settings, prompt_of(head, ref()), 20, 0);
    const auto check = [&](const QueryBlock& block) {
      for (Index r = 0; r < 2 * block.size(); ++r) {
        const auto row = static_cast<std::size_t>(r);
        const Index position = block.positions[row % block.positions.size()];
        CHECK(answering(*twilight, block, head, row) ==
              pruned(head, answering(*quest, block, head, row), r, block.size(), position, 0.6));
      }
    };
    check(query_block(head, 40, 47, 47, ref()));
    for (Index t = 40; t < 47;) {
      const Index end = t + append(*quest, token_block(head, t, 47, ref()));
      CHECK(append(*twilight, token_block(head, t, 47, ref())) == end - t);
      check(query_block(head, t, end, end, ref()));
      t = end;
    }
  }
}
