// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

using Degrees = std::vector<std::pair<TokenId, float>>;

// Middle 1 .. 6: (1,0) (4,3) (3,4) (0,1) (1,0) (0,2). Best partners: 1-5 and 4-6 mutual, cosine 1; 2-3 mutual, .96.
TEST_CASE("mesh: eight tokens, worked by hand") {
  const auto backend = make_ref_backend();
  const HeadData head = eight_tokens();
  const auto entries = [&](Index budget) {
    const auto cache =
        open_cache("mesh", {{"sinks", "1"}, {"recent", "1"}}, prompt_of(head, *backend), budget, 0, *backend);
    return held(*cache, head, *backend);
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
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 40, .decoded = 10}, 1, *backend);
  const auto open = [&](const char* limit, Index budget) {
    return open_cache("mesh", {{"sinks", "4"}, {"recent", "6"}, {"max_pairs", limit}}, prompt_of(head, *backend),
                      budget, 0, *backend);
  };
  CHECK_NOTHROW(open("900", 20));  // 40 - 4 - 6 = 30 tokens of the middle, 30^2 cosines
  CHECK_THROWS_WITH_AS(open("899", 20),
                       "mesh would compare 900 pairs of rows, above its limit of 899; raise mesh.max_pairs, or take a "
                       "shorter context, or chelsea, which compares inside chunks",
                       Infeasible);
  // Nothing to merge yet: the limit applies when decoding fills the budget.
  const auto cache = open("899", 40);
  CHECK_THROWS_AS(append(*cache, token_block(head, 40, 50, *backend)), Infeasible);
}
