// SPDX-License-Identifier: Apache-2.0
// Decoding: blocks of any size give the results of single tokens, and no future token is used.
#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

void check_same(const std::vector<std::vector<Result>>& single, const std::vector<std::vector<Result>>& blocks) {
  for (std::size_t h = 0; h < single.size(); ++h) {
    REQUIRE(single[h].size() == blocks[h].size());
    for (std::size_t i = 0; i < single[h].size(); ++i) {
      CAPTURE(i);
      CHECK(single[h][i].entries == blocks[h][i].entries);
      CHECK(max_difference(single[h][i].answers, blocks[h][i].answers) < 1e-5);
    }
  }
}

}  // namespace

TEST_CASE("blocks of decoded tokens give the entries and answers of single tokens") {
  for_each_row([](const Row& row, Backend& backend) {
    const Heads heads = heads_for(row, {}, backend);
    for (const Index budget : {3, 24, 40, 55}) {
      CAPTURE(budget);
      const auto run = [&](Index block) {
        const Instance instance = try_open(row, heads, budget, 1, backend);
        return instance.cache ? decode(instance, heads, block, row.info->observes, backend)
                              : std::vector<std::vector<Result>>{};
      };
      const auto single = run(1);
      check_same(single, run(4));
      check_same(single, run(100));
      for (const auto& head : single) {
        for (const Result& result : head) CHECK(all_finite(result.answers));
      }
    }
  });
}

TEST_CASE("streaming methods start from an empty context") {
  for_each_row([](const Row& row, Backend& backend) {
    if (!row.info->streaming) return;
    const Heads heads = heads_for(row, {.n = 0, .decoded = 40}, backend);
    for (const Index budget : {2, 16, 60}) {
      CAPTURE(budget);
      const auto run = [&](Index block) {
        const Instance instance = try_open(row, heads, budget, 1, backend);
        return instance.cache ? decode(instance, heads, block, row.info->observes, backend)
                              : std::vector<std::vector<Result>>{};
      };
      const Instance untouched = try_open(row, heads, budget, 1, backend);
      if (untouched.cache) {
        for (const Result& result : prefill(untouched, heads, backend)) CHECK(all_finite(result.answers));
      }
      const auto single = run(1);
      check_same(single, run(7));
      for (const auto& head : single) {
        for (const Result& result : head) CHECK(all_finite(result.answers));
      }
    }
  });
}
