// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Degrees = std::vector<std::pair<TokenId, float>>;

std::unique_ptr<CompressedCache> open_bsm(const HeadData& head, std::vector<Assignment> settings, Index budget,
                                          Backend& backend) {
  return open_cache("bsm", std::move(settings), prompt_of(head, backend), budget, 0, backend);
}

/// Visible entries of the query at `position`.
std::vector<Entry> seen(const CompressedCache& cache, const HeadData& head, Index position, Index tokens,
                        Backend& backend) {
  const QueryBlock block = query_block(head, position, position + 1, tokens, backend);
  return visible_entries(head, cache.entries(block), block, backend).front();
}

}  // namespace

TEST_CASE("small budgets cap sinks at a quarter, recent tokens at a half and the slack at half of the middle") {
  const auto parts = [](Index budget) {
    const MergingParts p = merging_parts({}, budget);
    return std::vector<Index>{p.sinks, p.recent, p.slack};
  };
  CHECK(parts(1) == std::vector<Index>{0, 0, 0});
  CHECK(parts(2) == std::vector<Index>{0, 1, 0});
  CHECK(parts(8) == std::vector<Index>{2, 4, 1});
  CHECK(parts(127) == std::vector<Index>{16, 63, 24});
  CHECK(parts(128) == std::vector<Index>{16, 64, 24});
  CHECK(parts(336) == std::vector<Index>{16, 64, 128});
  CHECK(parts(1000) == std::vector<Index>{16, 64, 128});
}

// Five equal keys, budget 4, nothing protected, slack min(3, 4/2) = 2. Token 4 would be entry 5, so rounds reduce them
// to 2: A 0 2 4, B 1 3, all links end at 1, half of 5 is 2 of them: (0 1 2) 3 4. Then A (012) 4, B 3: the first joins
// 3.
TEST_CASE("decoding merges down to budget - slack when the cache would exceed the budget, and only adds before") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(std::vector<float>(9, 1), 4);
  const auto cache = open_bsm(head, {{"sinks", "0"}, {"recent", "0"}, {"slack", "3"}}, 4, *backend);
  CHECK(degrees_of(seen(*cache, head, 4, 9, *backend)) == Degrees{{0, 1}, {1, 1}, {2, 1}, {3, 1}});

  REQUIRE(append(*cache, token_block(head, 4, 9, *backend)) == 1);
  const auto merged = seen(*cache, head, 4, 5, *backend);
  CHECK(degrees_of(merged) == Degrees{{3, 4}, {4, 1}});
  CHECK(merged[0].value[0] == doctest::Approx((1 + 2 + 4 + 8) / 4.0));

  REQUIRE(append(*cache, token_block(head, 5, 9, *backend)) == 2);
  CHECK(degrees_of(seen(*cache, head, 5, 9, *backend)) == Degrees{{3, 4}, {4, 1}, {5, 1}});  // causal: not token 6
  CHECK(degrees_of(seen(*cache, head, 6, 9, *backend)) == Degrees{{3, 4}, {4, 1}, {5, 1}, {6, 1}});
  // (0123) 4 5 6 7: A (0123) 5 7, B 4 6; two of the three join 4, then (01235 4) joins 6.
  REQUIRE(append(*cache, token_block(head, 7, 9, *backend)) == 1);
  CHECK(degrees_of(seen(*cache, head, 7, 8, *backend)) == Degrees{{6, 7}, {7, 1}});
}

TEST_CASE("decoding keeps sinks and recent tokens, and the recent window slides") {
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 20, .decoded = 20, .d = 4, .dv = 3, .group = 1}, 5, *backend);
  const auto cache = open_bsm(head, {{"sinks", "2"}, {"recent", "3"}, {"slack", "2"}}, 10, *backend);
  for (Index t = 20; t < 40; ++t) {
    REQUIRE(append(*cache, token_block(head, t, t + 1, *backend)) == 1);
    const auto entries = seen(*cache, head, t, t + 1, *backend);
    CHECK(std::ssize(entries) <= 10);
    const auto single = [&](TokenId id) {
      return std::ranges::any_of(entries, [&](const Entry& e) { return e.id == id && e.den == 1 && e.key.empty(); });
    };
    for (const Index id : {Index{0}, Index{1}, t - 2, t - 1, t}) CHECK(single(static_cast<TokenId>(id)));
    float sum = 0;
    for (const Entry& entry : entries) sum += entry.den;
    CHECK(sum == static_cast<float>(t + 1));  // every token in exactly one entry, and no future token
  }
  CHECK(cache->protected_tokens().sinks == 2);
  CHECK(cache->protected_tokens().recent == 3);
}

TEST_CASE("decoding continues the round number, so that a decreasing share continues to decrease") {
  const auto backend = make_ref_backend();
  // The share falls to the floor after one round: a round of M entries removes floor(0.1 M), at least 1. The ids show
  // which tokens each step merged.
  const HeadData head = random_head({.n = 40, .decoded = 10, .d = 4, .dv = 2, .group = 1}, 6, *backend);
  const std::vector<Assignment> one_by_one = {
      {"sinks", "0"}, {"recent", "0"}, {"ratio", "0.5"}, {"decay", "0.5"}, {"floor", "0.05"}};
  const std::vector<Assignment> halves = {{"sinks", "0"}, {"recent", "0"}};
  const auto run = [&](const std::vector<Assignment>& settings) {
    const auto cache = open_bsm(head, settings, 39, *backend);  // the first round removes one either way
    for (Index t = 40; t < 50; ++t) append(*cache, token_block(head, t, t + 1, *backend));
    return seen(*cache, head, 49, 50, *backend);
  };
  const auto slow = run(one_by_one), fast = run(halves);
  CHECK(slow.size() == fast.size());
  CHECK(degrees_of(slow) != degrees_of(fast));
}

TEST_CASE("an entry of one token is that token after any number of rounds") {
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 60, .decoded = 1, .d = 4, .dv = 3, .group = 1}, 7, *backend);
  const auto cache = open_bsm(head, {{"sinks", "1"}, {"recent", "2"}, {"ratio", "0.1"}}, 30, *backend);
  Index singles = 0;
  for (const Entry& entry : held(*cache, head, *backend)) {
    if (entry.den != 1) continue;
    ++singles;
    CHECK(entry.key.empty());
    CHECK(entry.value.empty());
  }
  CHECK(singles > 3);
}
