// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

using Degrees = std::vector<std::pair<TokenId, float>>;

// One chunk 1 .. 6, A 1 3 5, B 2 4 6: links 3-2 .96, then 1-2 and 5-2, both .8, the lower first.
TEST_CASE("bsm: eight tokens, worked by hand") {
  const auto backend = make_ref_backend();
  const HeadData head = eight_tokens();
  const auto entries = [&](Index budget) {
    const auto cache =
        open_cache("bsm", {{"sinks", "1"}, {"recent", "1"}}, prompt_of(head, *backend), budget, 0, *backend);
    return held(*cache, head, *backend);
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
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 4096, .decoded = 1, .d = 2, .dv = 1, .group = 1}, 4, *backend);
  HeadPrompt prompt;
  prompt.keys = rows_of(std::vector<float>(head.keys.begin(), head.keys.begin() + 8192), 2, *backend);
  prompt.values = rows_of(std::vector<float>(head.values.begin(), head.values.begin() + 4096), 1, *backend);
  backend->start_peak();
  const std::size_t before = backend->held_bytes();
  const auto cache = open_cache("bsm", {}, prompt, 2048, 0, *backend);
  CHECK(backend->peak_bytes() - before < 100 * 4096);  // 2048 x 2048 similarities are 4096 bytes 4096 times
}
