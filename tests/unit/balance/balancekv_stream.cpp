// SPDX-License-Identifier: Apache-2.0
// mode=stream compared with a literal transcription of Algorithms 1 and 3 at every token, with the same draws.
#include <kvbench/methods/sampling/balancekv_stream.hpp>

#include <doctest/doctest.h>

#include <limits>

#include <kvbench/methods/sampling/merge_and_reduce.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <support/chi_square.hpp>
#include <support/small.hpp>

#include "literal_balancekv.hpp"

using namespace kvbench;
using namespace kvbench::testing;

namespace {

using Weights = std::map<Index, std::pair<double, double>>;

Weights weights_at(const CompressedCache& cache, const HeadData& head, Index begin, Index end, Index position,
                   Backend& backend) {
  const QueryBlock block = query_block(head, begin, end, end, backend);
  Weights weights;
  const auto rows = visible_entries(head, cache.entries(block), block, backend);
  for (const Entry& entry : rows[static_cast<std::size_t>(position - begin)]) {
    weights[entry.id] = {entry.num, entry.den};
  }
  return weights;
}

/// A head with values of very different norms, one of them zero.
HeadData uneven_head(Index n, Index decoded, Backend& backend) {
  HeadData head = random_head({.n = n, .decoded = decoded, .d = 4, .dv = 3, .group = 1}, 7, backend);
  for (Index i = 0; i < head.total; ++i) {
    const auto factor = static_cast<float>(i == 9 ? 0 : std::exp2(i * 5 % 7 - 3));
    for (Index c = 0; c < 3; ++c) head.values[static_cast<std::size_t>(3 * i + c)] *= factor;
  }
  return head;
}

test::LiteralBalanceKV literal_for(const HeadData& head, const HeadPrompt& prompt,
                                   test::LiteralBalanceKV::Settings settings) {
  const Draws draws(4, "balancekv", prompt);
  settings.a = head.scale;
  settings.uniform = [draws](Index token, Index instance, Index level) {
    return draws.uniform(token, static_cast<std::uint32_t>(64 * instance + level));
  };
  return test::LiteralBalanceKV(std::move(settings));
}

test::Pair pair_of(const HeadData& head, Index i) {
  test::Pair pair{i, {}, {}};
  for (Index c = 0; c < head.d; ++c) pair.k.push_back(head.keys[static_cast<std::size_t>(i * head.d + c)]);
  for (Index c = 0; c < head.dv; ++c) pair.v.push_back(head.values[static_cast<std::size_t>(i * head.dv + c)]);
  return pair;
}

/// Streams the head in blocks and compares the entries at every token with those of the listing.
void compare(const HeadData& head, std::vector<Assignment> settings,
             const test::LiteralBalanceKV::Settings& literal_settings, Index block, Backend& backend) {
  settings.push_back({"mode", "stream"});
  settings.push_back({"half", "smaller"});
  HeadPrompt prompt = prompt_of(head, backend);
  if (head.n == 0) prompt.calibration_keys = tokens_of(head, head.total, backend).keys;
  const auto cache = open_cache("balancekv", settings, prompt, 1000, 4, backend);
  test::LiteralBalanceKV literal = literal_for(head, prompt, literal_settings);
  for (Index i = 0; i < head.n; ++i) literal.update(pair_of(head, i));
  if (head.n > 0) CHECK(weights_at(*cache, head, head.n, head.n + 1, head.n, backend) == literal.weights());
  Index blocks = 0;
  for (Index begin = head.n; begin < head.total; ++blocks) {
    const Index end = begin + cache->append(token_block(head, begin, std::min(begin + block, head.total), backend));
    for (Index i = begin; i < end; ++i) {
      literal.update(pair_of(head, i));
      CAPTURE(i);
      CHECK(weights_at(*cache, head, begin, end, i, backend) == literal.weights());
    }
    begin = end;
  }
  if (block > 1) CHECK(blocks < (head.total - head.n) * 3 / 4);  // append() takes several tokens at once
  double den = 0;
  for (const auto& [id, weight] : literal.weights()) den += weight.second;
  CHECK(den <= static_cast<double>(head.total));
}

double largest_key(const HeadData& head) {
  double r = 0;
  for (Index i = 0; i < head.total; ++i) r = std::max(r, test::norm(pair_of(head, i).k));
  return r;
}

}  // namespace

TEST_CASE("a stream equals Algorithms 1 and 3 at every token") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    for (const Index n : {0, 40}) {
      const HeadData head = uneven_head(n, 120 - n, *backend);
      const double total = static_cast<double>(head.total);
      for (const Index block : {1, 5, 200}) {
        CAPTURE(block);
        compare(head, {{"t", "8"}, {"rounds", "2"}, {"constants", "tight"}},
                {.t = 8,
                 .T = 2,
                 .a = 0,
                 .eps = 0.1,
                 .r = largest_key(head),
                 .n = total,
                 .constant = [](Index m) { return 0.5 + std::log(2.0 * static_cast<double>(m * m)); },
                 .uniform = {}},
                block, *backend);
        compare(head, {{"t", "6"}, {"rounds", "4"}, {"constants", "0.5"}},
                {.t = 6,
                 .T = 4,
                 .a = 0,
                 .eps = 0.1,
                 .r = largest_key(head),
                 .n = total,
                 .constant = [](Index) { return 0.5; },
                 .uniform = {}},
                block, *backend);
      }
    }
  }
}

TEST_CASE("buckets far below the largest value are dropped, and may open again") {
  const auto backend = make_ref_backend();
  HeadData head = uneven_head(0, 60, *backend);
  for (float& x : head.keys) x *= 0.1f;
  const test::LiteralBalanceKV::Settings settings{.t = 4,
                                                  .T = 2,
                                                  .a = 0,
                                                  .eps = 3,
                                                  .r = largest_key(head),
                                                  .n = 60,
                                                  .constant = [](Index) { return 1.0; },
                                                  .uniform = {}};
  for (const Index block : {1, 9})
    compare(head, {{"t", "4"}, {"rounds", "2"}, {"constants", "1"}, {"eps", "3"}}, settings, block, *backend);

  const auto buckets = [&](double eps) {
    auto changed = settings;
    changed.eps = eps;
    test::LiteralBalanceKV literal = literal_for(head, {}, changed);
    for (Index i = 0; i < head.total; ++i) literal.update(pair_of(head, i));
    return literal.buckets();
  };
  CHECK(buckets(3) < buckets(0.001));
}

TEST_CASE("buckets: 2^{i-1} < |v| <= 2^i") {
  CHECK(norm_bucket(1) == 0);
  CHECK(norm_bucket(1.001) == 1);
  CHECK(norm_bucket(2) == 1);
  CHECK(norm_bucket(0.5) == -1);
  CHECK(norm_bucket(0.51) == 0);
}

// t = 4, T = 2, 22 tokens: five batches and two remaining tokens. Batch 5 is in level 1 (2 tokens of weight 2), batches 1 to 4
// in level 2 (4 of weight 4), 2 in level 0.
TEST_CASE("exact halves of a stream: sizes by formula, weights that sum to the tokens, and the footprint") {
  const auto backend = make_ref_backend();
  HeadData head = random_head({.n = 22, .decoded = 1, .d = 4, .dv = 3, .group = 1}, 2, *backend);
  head.values.assign(head.values.size(), 0.5f);
  const auto cache = open_cache("balancekv", {{"mode", "stream"}, {"t", "4"}, {"rounds", "2"}},
                                prompt_of(head, *backend), 22, 0, *backend);
  std::map<double, int> levels;
  double den = 0, num = 0;
  Index in_d = 0, in_n = 0, in_any = 0;
  for (const auto& [id, weight] : weights_at(*cache, head, 22, 23, 22, *backend)) {
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

// One batch of four tokens is halved: the tokens that D keeps follow Algorithm 2 with v = 1.
TEST_CASE("the halves of D have the distribution of the listing") {
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 4, .decoded = 1, .d = 2, .dv = 1, .group = 1}, 5, *backend);
  test::Pairs pairs;
  double r_key = 0;
  for (Index i = 0; i < 4; ++i) {
    pairs.push_back({i, pair_of(head, i).k, {1}});
    r_key = std::max(r_key, test::norm(pairs.back().k));
  }
  std::vector<double> law(16), counts(16);
  for (std::size_t script = 0; script < 16; ++script) {
    double probability = 1;
    std::size_t step = 0, kept = 0;
    const auto coin = [&](const test::Pair&, double p) {
      const bool plus = (script >> step++ & 1) != 0;
      probability *= plus ? std::clamp(p, 0.0, 1.0) : 1 - std::clamp(p, 0.0, 1.0);
      return plus;
    };
    for (const test::Pair& pair : test::softmax_balance(
                                      pairs, head.scale, r_key, 1, [](Index) { return 0.5; }, coin)
                                      .output) {
      kept |= std::size_t{1} << pair.token;
    }
    law[kept] += probability;
  }
  const MethodInfo& info = find_method("balancekv");
  const std::vector<Assignment> settings = {
      {"mode", "stream"}, {"half", "smaller"}, {"t", "4"}, {"rounds", "1"}, {"constants", "0.5"}};
  const auto prepared = info.prepare_head(prompt_of(head, *backend), info.bind(settings), *backend);
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    std::size_t kept = 0;
    for (const auto& [id, weight] : weights_at(*prepared(10, seed), head, 4, 5, 4, *backend)) {
      if (weight.second > 0) kept |= std::size_t{1} << id;
    }
    counts[kept] += 1;
  }
  CHECK(test::follows(counts, law));
}
