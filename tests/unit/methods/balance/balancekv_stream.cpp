// SPDX-License-Identifier: Apache-2.0
// mode=stream: sizes, buckets and budgets. Its ids and weights are compared with Algorithms 1 and 3, token by token, in
// tests/unit/faithful.
#include <kvbench/methods/sampling/balancekv_stream.hpp>

#include <doctest/doctest.h>

#include <kvbench/methods/sampling/merge_and_reduce.hpp>
#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Weights = std::map<Index, std::pair<double, double>>;

Weights weights_at(const CompressedCache& cache, const HeadData& head, Index begin, Index end, Index position) {
  const QueryBlock block = query_block(head, begin, end, end, ref());
  Weights weights;
  const auto rows = visible_entries(head, cache.entries(block), block, ref());
  for (const Entry& entry : rows[static_cast<std::size_t>(position - begin)]) {
    weights[entry.id] = {entry.num, entry.den};
  }
  return weights;
}

}  // namespace

TEST_CASE("a run of decoded tokens is appended at once up to the next batch") {
  const HeadData head = random_head({.n = 40, .decoded = 80, .d = 4, .dv = 3, .group = 1}, 7, cpu());
  const auto cache = open_cache("balancekv", {{"mode", "stream"}, {"t", "8"}, {"rounds", "2"}}, prompt_of(head, cpu()),
                                1000, 4, cpu());
  Index blocks = 0;
  for (Index begin = head.n; begin < head.total; ++blocks)
    begin += append(*cache, token_block(head, begin, head.total, cpu()));
  CHECK(blocks > 1);
  CHECK(blocks < (head.total - head.n) * 3 / 4);
}

TEST_CASE("buckets: 2^{i-1} < |v| <= 2^i") {
  CHECK(norm_bucket(1) == 0);
  CHECK(norm_bucket(1.001) == 1);
  CHECK(norm_bucket(2) == 1);
  CHECK(norm_bucket(0.5) == -1);
  CHECK(norm_bucket(0.51) == 0);
}

// t = 4, T = 2, 22 tokens: five batches and two remaining tokens. Batch 5 is in level 1 (2 tokens of weight 2), batches
// 1 to 4 in level 2 (4 of weight 4), 2 in level 0.
TEST_CASE("exact halves of a stream: sizes by formula, weights that sum to the tokens, and the footprint") {
  HeadData head = random_head({.n = 22, .decoded = 1, .d = 4, .dv = 3, .group = 1}, 2, ref());
  head.values.assign(head.values.size(), 0.5f);
  const auto cache =
      open_cache("balancekv", {{"mode", "stream"}, {"t", "4"}, {"rounds", "2"}}, prompt_of(head, ref()), 22, 0);
  std::map<double, int> levels;
  double den = 0, num = 0;
  Index in_d = 0, in_n = 0, in_any = 0;
  for (const auto& [id, weight] : weights_at(*cache, head, 22, 23, 22)) {
    if (weight.second > 0) ++levels[weight.second];
    num += weight.first;
    den += weight.second;
    in_n += weight.first > 0;
    in_d += weight.second > 0;
    ++in_any;
  }
  CHECK(levels == std::map<double, int>{{1, 2}, {2, 2}, {4, 4}});
  CHECK(den == 22);
  CHECK(num == 22);
  CHECK(in_d == held_after(22, 4, 2));
  CHECK(in_n == 8);
  CHECK(held_up_to(22, 4, 2) == 3 + 2 + 4);

  const Footprint arrays = cache->footprint();
  CHECK(arrays[0].rows == in_any);
  CHECK(arrays[0].cols == 4);
  CHECK(arrays[1].rows == 8);
  CHECK(arrays[1].cols == 3);
  CHECK(arrays[2].rows == in_any);
  CHECK(arrays[2].cols == 2);
}

TEST_CASE("the batch size uses the budget and does not exceed it") {
  const StreamSizes sizes{.tokens = 3840, .buckets = {100, 700, 2500, 540}};
  Index before = 0;
  for (const Index budget : {240, 480, 960, 1920, 3000}) {
    const TreePlan plan = plan_stream(sizes, {}, budget, 64, 64);
    Index numbers = held_after(3840, plan.t, plan.levels) * 64;
    for (const Index bucket : sizes.buckets) numbers += held_after(bucket, plan.t, plan.levels) * 128;
    CHECK(numbers <= budget * 128);
    CHECK(numbers >= budget * 128 * 8 / 10);
    CHECK((plan.t << plan.levels) >= 3840);
    CHECK(plan.t > before);
    before = plan.t;
  }
  CHECK(plan_stream(sizes, {}, 3840, 64, 64).levels == 0);
  CHECK(plan_stream(sizes, {.t = 64}, 3840, 64, 64).levels == 0);
  CHECK(plan_stream(sizes, {.t = 64}, 960, 64, 64).levels > 0);
  CHECK_THROWS_WITH_AS(plan_stream(sizes, {.t = 64}, 10, 64, 64), doctest::Contains("balancekv.t"), Infeasible);
}
