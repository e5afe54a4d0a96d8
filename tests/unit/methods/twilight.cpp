// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

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
  const auto backend = make_ref_backend();
  const HeadData head = small_head(logs({8, 4, 4, 2, 1, 1, 1}), 6);
  const QueryBlock block = query_block(head, 6, 7, 7, *backend);
  const auto kept = [&](const char* p, Index budget) {
    const auto cache = open_cache("twilight", {{"p", p}, {"page", "2"}, {"min_pages", "1"}}, prompt_of(head, *backend),
                                  budget, 0, *backend);
    return answering(*cache, block, head, *backend);
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
  const auto backend = make_ref_backend();
  HeadData head{.n = 2, .total = 3, .d = 3, .dv = 1};
  head.keys = {0, 15, 0.4f, 0, 14, 1.5f, 0, 0, 0};
  head.values = {1, 2, 3};
  head.queries = {0, 0, 1, 0, 0, 1, 0, 0, 1};
  const auto cache = open_cache("twilight", {{"p", "0.8"}, {"page", "1"}, {"min_pages", "1"}},
                                prompt_of(head, *backend), 2, 0, *backend);
  CHECK(answering(*cache, query_block(head, 2, 3, 3, *backend), head, *backend) == Ids{1});
}

TEST_CASE("twilight prunes what quest selects, in prefill and decode") {
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 40, .decoded = 7, .group = 2}, 31, *backend);
  for (const char* per : {"query_head", "kv_head"}) {
    const std::vector<Assignment> pages = {{"page", "4"}, {"min_pages", "1"}, {"per", per}};
    std::vector<Assignment> settings = pages;
    settings.push_back({"p", "0.6"});
    const auto quest = open_cache("quest", pages, prompt_of(head, *backend), 20, 0, *backend);
    const auto twilight = open_cache("twilight", settings, prompt_of(head, *backend), 20, 0, *backend);
    const auto check = [&](const QueryBlock& block) {
      for (Index r = 0; r < 2 * block.size(); ++r) {
        const auto row = static_cast<std::size_t>(r);
        const Index position = block.positions[row % block.positions.size()];
        CHECK(answering(*twilight, block, head, *backend, row) ==
              pruned(head, answering(*quest, block, head, *backend, row), r, block.size(), position, 0.6));
      }
    };
    check(query_block(head, 40, 47, 47, *backend));
    for (Index t = 40; t < 47;) {
      const Index end = t + append(*quest, token_block(head, t, 47, *backend));
      CHECK(append(*twilight, token_block(head, t, 47, *backend)) == end - t);
      check(query_block(head, t, end, end, *backend));
      t = end;
    }
  }
}
