// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Budgets = std::vector<Index>;

Budgets plan(std::vector<Assignment> settings, Index layers, Index n, Index budget) {
  const MethodInfo& info = find_method("pyramidkv");
  ModelContext context{.prompt_group = "", .tokens = n};
  for (Index l = 0; l < layers; ++l) context.layers.push_back(l);
  return info.plan(context, budget, info.bind(settings));
}

}  // namespace

// B = 132, W = 32: past 100, min 100 / 20 = 5, max 195, step 190 / 4 = 47 (2 are lost): 195 148 101 54 7, with the
// window 227 180 133 86 39. The mean is 133: 132 and the remainder of 2 over 2.
TEST_CASE("pyramidkv plans a budget that falls by equal steps") {
  CHECK(plan({}, 5, 1000, 132) == Budgets{227, 180, 133, 86, 39});
  // beta = 4, W = 8: past 24, min 6, max 42, step 36 / 3 = 12 without a remainder: the mean is the budget.
  const Budgets even = plan({{"window", "8"}, {"beta", "4"}}, 4, 100, 32);
  CHECK(even == Budgets{50, 38, 26, 14});
  CHECK(std::accumulate(even.begin(), even.end(), Index{0}) == 4 * 32);
  CHECK(plan({{"window", "8"}}, 1, 100, 32) == Budgets{32});
}

// n = 60, W = 8, B = 32: past 24, min 24 / 20 = 1, max 47 < 52. n = 50: 47 >= 42, so max 42, min 48 - 42 = 6, step 36 /
// 3.
TEST_CASE("the first layer of pyramidkv gets at most the context, and the last layer gets the rest") {
  CHECK(plan({{"window", "8"}}, 4, 60, 32) == Budgets{55, 40, 25, 10});  // step 46 / 3 = 15
  const Budgets clamped = plan({{"window", "8"}}, 4, 50, 32);
  CHECK(clamped == Budgets{50, 38, 26, 14});
  CHECK(std::accumulate(clamped.begin(), clamped.end(), Index{0}) == 4 * 32);
  CHECK(plan({{"window", "8"}}, 4, 55, 32) == Budgets{55, 40, 25, 10});  // 47 = 55 - 8: the clamp changes nothing
}

TEST_CASE("pyramidkv is uniform where the context is short, and keeps everything where the budget exceeds it") {
  CHECK(plan({{"window", "8"}}, 3, 47, 32) == Budgets{32, 32, 32});  // 47 < 2 * 24
  CHECK(plan({{"window", "8"}}, 3, 48, 32) == Budgets{48, 32, 16});  // max 40, min 8, step 16
  CHECK(plan({{"window", "8"}}, 3, 31, 32) == Budgets{31, 31, 31});
  CHECK(plan({{"window", "8"}}, 3, 100, 8) == Budgets{8, 8, 8});  // only the window
  CHECK(plan({{"window", "8"}}, 3, 100, 5) == Budgets{5, 5, 5});
}

TEST_CASE("the layers of pyramidkv hold the budget on average, except for the rounding of the steps") {
  for (const Index layers : {2, 3, 30, 32}) {
    for (Index budget = 33; budget <= 500; budget += 7) {
      CAPTURE(layers);
      CAPTURE(budget);
      const Budgets budgets = plan({}, layers, 500, budget);
      const Index sum = std::accumulate(budgets.begin(), budgets.end(), Index{0});
      CHECK(sum >= layers * budget);
      CHECK(sum <= layers * budget + layers * (layers - 2) / 2);
      CHECK(std::ranges::is_sorted(budgets, std::greater()));
      CHECK(budgets.front() <= 500);
      CHECK(budgets.back() >= 32);
    }
  }
}

// Votes 5 1 1 3 4 for the tokens before the window of 2 (see snapkv).
TEST_CASE("pyramidkv keeps the same tokens as snapkv at the budget of its layer") {
  const HeadData head = small_head(logs({5, 1, 1, 3, 4, 100, 100, 1}), 7);
  const std::vector<Assignment> settings = {{"window", "2"}, {"kernel", "3"}, {"pooling", "mean"}};
  const QueryBlock block = query_block(head, 7, 8, 8, ref());
  for (const Index budget : {1, 2, 3, 5, 7}) {
    const auto snapkv = open_cache("snapkv", settings, prompt_of(head, ref()), budget, 0);
    const auto pyramid = open_cache("pyramidkv", settings, prompt_of(head, ref()), budget, 0);
    CHECK(answering(*pyramid, block, head) == answering(*snapkv, block, head));
  }
  const auto cache = open_cache("pyramidkv", settings, prompt_of(head, ref()), 3, 0);
  CHECK(answering(*cache, block, head) == Ids{3, 5, 6});
  append(*cache, token_block(head, 7, 8, ref()));
  CHECK(answering(*cache, block, head) == Ids{3, 5, 6, 7});
  // One query head: B = 3 kept tokens and the decoded one.
  CHECK(cache->footprint()[0].rows == 4);
  CHECK(cache->footprint()[1].rows == 4);
}
