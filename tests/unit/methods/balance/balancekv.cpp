// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/balancekv.hpp>

#include <doctest/doctest.h>

#include <map>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Weights = std::map<TokenId, float>;

/// Weights by token, equal in numerator and denominator.
Weights weights_of(const CompressedCache& cache, const HeadData& head, Index end) {
  const QueryBlock block = query_block(head, end - 1, end, end, ref());
  Weights weights;
  const auto rows = visible_entries(head, cache.entries(block), block, ref());
  for (const Entry& entry : rows[0]) {
    CHECK(entry.num == entry.den);
    weights[entry.id] = entry.den;
  }
  return weights;
}

Weights compress(const HeadData& head, std::vector<Assignment> settings, Index budget) {
  const auto cache = open_cache("balancekv", std::move(settings), prompt_of(head, ref()), budget, 0);
  return weights_of(*cache, head, head.n + 1);
}

HeadData ones(Index n, Index total) {
  HeadData head = small_head(std::vector<float>(static_cast<std::size_t>(total)), n);
  head.values.assign(head.values.size(), 1);
  return head;
}

}  // namespace

// Equal keys and values 1 2 4 8 1 2: inner products are products of values. Signed sums before each token: 0, 1, 1 - 2,
// 3, so the signs of a block of four are + - + -, and of the next two + -.
TEST_CASE("balancekv: greedy signs oppose the sum, and the smaller class is kept with weight 2") {
  HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 6);
  head.values = {1, 2, 4, 8, 1, 2, 0};
  const std::vector<Assignment> greedy = {{"constants", "greedy"}, {"half", "smaller"}, {"block", "4"}};
  CHECK(compress(head, greedy, 3) == Weights{{0, 2}, {2, 2}, {4, 2}});
  // A second round takes 0 2 4 (values 1 4 1) as one block: + - +, the smaller class is -.
  CHECK(compress(head, {{"constants", "greedy"}, {"half", "smaller"}, {"block", "4"}, {"rounds", "2"}}, 1) ==
        Weights{{2, 4}});
  // A budget of 4 leaves a window of two: 0 2 of the first four.
  CHECK(compress(head, greedy, 4) == Weights{{0, 2}, {2, 2}, {4, 1}, {5, 1}});
}

// Differences of neighbours are 1 - 2 and 4 - 8: the first pair is + -, and (4 - 8)(1 - 2) > 0 makes the second - +.
TEST_CASE("balancekv: by default it keeps one of each pair, and the weights sum to n") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0}, 4), odd = small_head({0, 0, 0, 0, 0, 0}, 5);
  const std::vector<Assignment> greedy = {{"constants", "greedy"}};
  CHECK(compress(head, greedy, 2) == Weights{{0, 2}, {3, 2}});
  CHECK(compress(odd, greedy, 3) == Weights{{0, 2}, {3, 2}, {4, 1}});

  const HeadData long_head = random_head({.n = 200, .decoded = 1}, 3, ref());
  for (const Index rounds : {1, 2, 3}) {
    const Weights kept = compress(long_head, {{"block", "16"}}, 200 >> rounds);
    CHECK(std::ssize(kept) == 200 >> rounds);
    for (const auto& [id, weight] : kept) CHECK(weight == static_cast<float>(1 << rounds));
  }
}

// Equal tokens: after + the next sum is 1 > c, so that the next sign is certainly -, and so on: every second step
// FAILs.
TEST_CASE("balancekv: a FAIL is counted, and the walk continues") {
  const HeadData head = ones(8, 9);
  const auto notes = [&](const std::string& constant) {
    const auto cache =
        open_cache("balancekv", {{"constants", constant}, {"half", "smaller"}}, prompt_of(head, ref()), 4, 0);
    CHECK(std::ssize(weights_of(*cache, head, 9)) == 4);
    return cache->notes();
  };
  const auto failed = notes("0.4");
  REQUIRE(failed.size() == 2);
  CHECK(failed[0].text == "FAIL events of the walk");
  CHECK(failed[0].count == 4);
  CHECK(failed[1].count == 8);
  CHECK(notes("1").empty());  // |sum| = 1 is not above c
}

TEST_CASE("balancekv: half=released keeps its weights over rounds") {
  HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 6);
  // Sums 0, -1, 0, ...: + + then 1 - 2 + 1 = 0 and equal values: signs + + + - + -; c = 2, + is dropped up to c.
  head.values = {1, -2, 1, 1, 1, 1, 0};
  const Weights kept = compress(head, {{"constants", "greedy"}, {"half", "released"}}, 3);
  CHECK(kept == Weights{{3, 1}, {4, 1}, {5, 1}});
}

TEST_CASE("balancekv keeps decoded tokens and its window, and does not exceed the budget") {
  const HeadData head = random_head({.n = 48, .decoded = 6, .d = 4, .dv = 3}, 1, ref());
  const auto cache = open_cache("balancekv", {{"half", "smaller"}}, prompt_of(head, ref()), 15, 0);
  CHECK(cache->protected_tokens().recent == 4);  // 4 + 44 / 4 = 15
  CHECK(append(*cache, token_block(head, 48, 54, ref())) == 6);
  const Weights kept = weights_of(*cache, head, 54);
  for (TokenId id = 44; id < 54; ++id) CHECK(kept.at(id) == 1);
  const Index middle = std::ssize(kept) - 10;
  CHECK(middle <= 11);
  for (const auto& [id, weight] : kept) CHECK(weight == (id < 44 ? 4 : 1));

  const Footprint arrays = cache->footprint();  // decoded tokens need no weight
  CHECK(arrays[0].rows == middle + 10);
  CHECK(arrays[0].cols == 4);
  CHECK(arrays[1].cols == 3);
  CHECK(arrays[2].rows == middle + 4);
  CHECK(arrays[2].cols == 1);
}

TEST_CASE("balancekv rejects parameters that exclude each other") {
  const MethodInfo& info = find_method("balancekv");
  const auto bind = [&](std::vector<Assignment> settings) { return info.bind(settings); };
  CHECK_THROWS_WITH_AS(bind({{"constants", "quick"}}), doctest::Contains("paper, tight, greedy"), Error);
  CHECK_THROWS_WITH_AS(bind({{"block", "7"}}), doctest::Contains("half=smaller"), Error);
  CHECK_NOTHROW(bind({{"half", "smaller"}, {"block", "7"}}));
  CHECK_THROWS_AS(bind({{"mode", "stream"}, {"t", "7"}}), Error);
  CHECK_THROWS_AS(bind({{"half", "released"}, {"mode", "stream"}}), Error);
  CHECK_THROWS_AS(bind({{"t", "8"}}), Error);
  CHECK_THROWS_AS(bind({{"mode", "stream"}, {"t", "1"}}), Error);

  HeadPrompt prompt = prompt_of(ones(4, 5), ref());
  prompt.calibration_keys = prompt.keys;
  for (const Assignment& batch : {Assignment{"mode", "batch"}, Assignment{"half", "released"}}) {
    CHECK_THROWS_WITH_AS(open_cache("balancekv", {batch}, prompt, 2, 0), doctest::Contains("mode=stream"), Unavailable);
  }
}
