// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Degrees = std::vector<std::pair<TokenId, float>>;

std::unique_ptr<CompressedCache> open_bsm(const HeadData& head, std::vector<Assignment> settings, Index budget) {
  return open_cache("bsm", std::move(settings), prompt_of(head, ref()), budget, 0);
}

/// Visible entries of the query at `position`.
std::vector<Entry> seen(const CompressedCache& cache, const HeadData& head, Index position, Index tokens) {
  const QueryBlock block = query_block(head, position, position + 1, tokens, ref());
  return visible_entries(head, cache.entries(block), block, ref()).front();
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
  const HeadData head = small_head(std::vector<float>(9, 1), 4);
  const auto cache = open_bsm(head, {{"sinks", "0"}, {"recent", "0"}, {"slack", "3"}}, 4);
  CHECK(degrees_of(seen(*cache, head, 4, 9)) == Degrees{{0, 1}, {1, 1}, {2, 1}, {3, 1}});

  REQUIRE(append(*cache, token_block(head, 4, 9, ref())) == 1);
  const auto merged = seen(*cache, head, 4, 5);
  CHECK(degrees_of(merged) == Degrees{{3, 4}, {4, 1}});
  CHECK(merged[0].value[0] == doctest::Approx((1 + 2 + 4 + 8) / 4.0));

  REQUIRE(append(*cache, token_block(head, 5, 9, ref())) == 2);
  CHECK(degrees_of(seen(*cache, head, 5, 9)) == Degrees{{3, 4}, {4, 1}, {5, 1}});  // causal: not token 6
  CHECK(degrees_of(seen(*cache, head, 6, 9)) == Degrees{{3, 4}, {4, 1}, {5, 1}, {6, 1}});
  // (0123) 4 5 6 7: A (0123) 5 7, B 4 6; two of the three join 4, then (01235 4) joins 6.
  REQUIRE(append(*cache, token_block(head, 7, 9, ref())) == 1);
  CHECK(degrees_of(seen(*cache, head, 7, 8)) == Degrees{{6, 7}, {7, 1}});
}

TEST_CASE("decoding keeps sinks and recent tokens, and the recent window slides") {
  const HeadData head = random_head({.n = 20, .decoded = 20, .d = 4, .dv = 3, .group = 1}, 5, ref());
  const auto cache = open_bsm(head, {{"sinks", "2"}, {"recent", "3"}, {"slack", "2"}}, 10);
  for (Index t = 20; t < 40; ++t) {
    REQUIRE(append(*cache, token_block(head, t, t + 1, ref())) == 1);
    const auto entries = seen(*cache, head, t, t + 1);
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
  // The share falls to the floor after one round: a round of M entries removes floor(0.1 M), at least 1. The ids show
  // which tokens each step merged.
  const HeadData head = random_head({.n = 40, .decoded = 10, .d = 4, .dv = 2, .group = 1}, 6, ref());
  const std::vector<Assignment> one_by_one = {
      {"sinks", "0"}, {"recent", "0"}, {"ratio", "0.5"}, {"decay", "0.5"}, {"floor", "0.05"}};
  const std::vector<Assignment> halves = {{"sinks", "0"}, {"recent", "0"}};
  const auto run = [&](const std::vector<Assignment>& settings) {
    const auto cache = open_bsm(head, settings, 39);  // the first round removes one either way
    for (Index t = 40; t < 50; ++t) append(*cache, token_block(head, t, t + 1, ref()));
    return seen(*cache, head, 49, 50);
  };
  const auto slow = run(one_by_one), fast = run(halves);
  CHECK(slow.size() == fast.size());
  CHECK(degrees_of(slow) != degrees_of(fast));
}

TEST_CASE("an entry of one token is that token after any number of rounds") {
  const HeadData head = random_head({.n = 60, .decoded = 1, .d = 4, .dv = 3, .group = 1}, 7, ref());
  const auto cache = open_bsm(head, {{"sinks", "1"}, {"recent", "2"}, {"ratio", "0.1"}}, 30);
  Index singles = 0;
  for (const Entry& entry : held(*cache, head)) {
    if (entry.den != 1) continue;
    ++singles;
    CHECK(entry.key.empty());
    CHECK(entry.value.empty());
  }
  CHECK(singles > 3);
}

// One chunk 1 .. 6, A 1 3 5, B 2 4 6: links 3-2 .96, then 1-2 and 5-2, both .8, the lower first.
TEST_CASE("bsm: eight tokens, worked by hand") {
  const HeadData head = eight_tokens();
  const auto entries = [&](Index budget) {
    const auto cache = open_cache("bsm", {{"sinks", "1"}, {"recent", "1"}}, prompt_of(head, ref()), budget, 0);
    return held(*cache, head);
  };
  CHECK(find_method("tome").name == "bsm");
  CHECK(degrees_of(entries(7)) == Degrees{{0, 1}, {1, 1}, {2, 2}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
  CHECK(degrees_of(entries(6)) == Degrees{{0, 1}, {2, 3}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
  const auto five = entries(5);
  CHECK(degrees_of(five) == Degrees{{0, 1}, {2, 4}, {4, 1}, {6, 1}, {7, 1}});
  check_merged(five[1], {9 / 4.0f, 7 / 4.0f}, (2 + 4 + 8 + 32) / 4.0f);
  // Next round: (9,7)/4 and (0,2) are A, (0,1) is B: .614 and 1. Degrees 1 and 1.
  const auto four = entries(4);
  CHECK(degrees_of(four) == Degrees{{0, 1}, {2, 4}, {4, 2}, {7, 1}});
  check_merged(four[2], {0, 1.5f}, 40);
}

TEST_CASE("bsm never stores all similarities") {
  const HeadData head = random_head({.n = 4096, .decoded = 1, .d = 2, .dv = 1, .group = 1}, 4, ref());
  HeadPrompt prompt;
  prompt.keys = rows_of(std::vector<float>(head.keys.begin(), head.keys.begin() + 8192), 2);
  prompt.values = rows_of(std::vector<float>(head.values.begin(), head.values.begin() + 4096), 1);
  ref().start_peak();
  const std::size_t before = ref().held_bytes();
  const auto cache = open_cache("bsm", {}, prompt, 2048, 0);
  CHECK(ref().peak_bytes() - before < 100 * 4096);  // 2048 x 2048 similarities are 4096 bytes 4096 times
}

// Middle 1 .. 6: (1,0) (4,3) (3,4) (0,1) (1,0) (0,2). Best partners: 1-5 and 4-6 mutual, cosine 1; 2-3 mutual, .96.
TEST_CASE("mesh: eight tokens, worked by hand") {
  const HeadData head = eight_tokens();
  const auto entries = [&](Index budget) {
    const auto cache = open_cache("mesh", {{"sinks", "1"}, {"recent", "1"}}, prompt_of(head, ref()), budget, 0);
    return held(*cache, head);
  };
  CHECK(degrees_of(entries(7)) == Degrees{{0, 1}, {1, 2}, {2, 1}, {3, 1}, {4, 1}, {6, 1}, {7, 1}});
  CHECK(degrees_of(entries(6)) == Degrees{{0, 1}, {1, 2}, {2, 1}, {3, 1}, {4, 2}, {7, 1}});
  const auto five = entries(5);
  CHECK(degrees_of(five) == Degrees{{0, 1}, {1, 2}, {2, 2}, {4, 2}, {7, 1}});
  check_merged(five[2], {3.5f, 3.5f}, 6);
  check_merged(five[3], {0, 1.5f}, 40);
  // Next round: (1,0), (3.5,3.5), (0,1.5): the first and the last have .707 with the middle one; the link of the first
  // is kept.
  const auto four = entries(4);
  CHECK(degrees_of(four) == Degrees{{0, 1}, {1, 4}, {4, 2}, {7, 1}});
  check_merged(four[1], {2.25f, 1.75f}, (17 + 6) / 2.0f);
}

TEST_CASE("mesh is infeasible above its limit of pairs, and the message names the remedy") {
  const HeadData head = random_head({.n = 40, .decoded = 10}, 1, ref());
  const auto open = [&](const char* limit, Index budget) {
    return open_cache("mesh", {{"sinks", "4"}, {"recent", "6"}, {"max_pairs", limit}}, prompt_of(head, ref()), budget,
                      0);
  };
  CHECK_NOTHROW(open("900", 20));  // 40 - 4 - 6 = 30 tokens of the middle, 30^2 cosines
  CHECK_THROWS_WITH_AS(open("899", 20),
                       "mesh would compare 900 pairs of rows, above its limit of 899; raise mesh.max_pairs, or take a "
                       "shorter context, or chelsea, which compares inside chunks",
                       Infeasible);
  // Nothing to merge yet: the limit applies when decoding fills the budget.
  const auto cache = open("899", 40);
  CHECK_THROWS_AS(append(*cache, token_block(head, 40, 50, ref())), Infeasible);
}
