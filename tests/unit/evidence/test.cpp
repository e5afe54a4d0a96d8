// SPDX-License-Identifier: Apache-2.0
#include <kvbench/evidence/test.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/verdict.hpp>
#include <kvbench/kernels/philox.hpp>

using namespace kvbench;
using namespace kvbench::evidence;
using doctest::Approx;
using Over = Test::Over;

namespace {

constexpr PlaceSample four_layers{.layers = 4, .layers_are_units = true, .model_layers = 8};

/// One query per place.
Values on_places(const std::vector<double>& places) {
  Values out{.mean = mean(places)};
  for (const double value : places) out.places.sums.push_back(value), out.places.counts.push_back(1);
  return out;
}

/// One query per block, and all of them on the places.
Values with_blocks(Values values, const std::vector<double>& blocks) {
  values.blocks = {blocks, std::vector<double>(blocks.size(), 1)};
  return values;
}

Test one(const Pair& pair, const Design& design = {}) { return test_group(std::span(&pair, 1), design).front(); }

}  // namespace

TEST_CASE("ratios on the layers of a text, by hand") {
  // log2 of the ratios: 0, 4, 5, 7. Mean 4, variance 26/3, of the mean 13/6; t_3 is 3.1824.
  const Test test = one({on_places({1, 16, 32, 128}), on_places({1, 1, 1, 1}), four_layers});
  CHECK(test.over == Over::places);
  CHECK(std::exp(test.places.mean) == Approx(16));
  CHECK(std::exp(test.places.interval_at(0.95).hi) == Approx(std::exp2(4 + 3.182446 * std::sqrt(13. / 6))));
  CHECK(test.units == 4);
  CHECK(test.tested_over == "4 of 8 layers");
  CHECK(test.p_value > 0.05);
}

TEST_CASE("documents are places of their own kind; differences of values that may be negative") {
  const PlaceSample documents{.rows = "documents"};
  const Test test = one({on_places({1, 2, 3}), on_places({0, 0, 0}), documents}, {.scale = {.ratios = false}});
  CHECK(test.places.mean == 2);
  CHECK(test.places.error == Approx(std::sqrt(1. / 3)));
  CHECK(test.tested_over == "3 documents");
  CHECK(one({on_places({1, 2}), on_places({3, 3}), documents}).over == Over::nothing);  // two are no sample
}

TEST_CASE("a group is tested over the same: a pair without a ratio has no test, and is not counted") {
  const std::vector<double> blocks(8, 2), ones(8, 1);
  const Values best = with_blocks(on_places({1, 1, 1, 1}), ones);
  const Pair worse{with_blocks(on_places({2, 4, 4, 4}), blocks), best, four_layers},
      exact{with_blocks(on_places({0, 4, 4, 4}), blocks), best, four_layers};
  const Pair group[] = {worse, exact, worse};
  const auto tests = test_group(group, {});
  CHECK(tests[0].over == Over::places);
  CHECK(tests[1].over == Over::nothing);
  CHECK(std::isnan(tests[1].p_value));
  CHECK(tests[1].tested_over.empty());
  CHECK(tests[1].blocks.difference == 1);  // is known all the same
  const auto adjusted = adjust(std::vector{tests[0].p_value, tests[1].p_value, tests[2].p_value});
  CHECK(adjusted[0].p == Approx(2 * tests[0].p_value));
  // Where no pair has ratios, blocks decide for all of them.
  const Pair alone[] = {exact, exact};
  for (const Test& test : test_group(alone, {})) {
    CHECK(test.over == Over::blocks);
    CHECK(test.p_value == 2. / 256);
    CHECK(test.tested_over == "8 blocks of queries");
  }
}

TEST_CASE("blocks that cannot give a significant p-value, one seed and infinite means test nothing") {
  const auto pair = [](double a, std::size_t blocks) {
    return Pair{with_blocks({}, std::vector(blocks, a)), with_blocks({}, std::vector(blocks, 1.)), std::nullopt};
  };
  CHECK(one(pair(2, 8), {.family = 6}).over == Over::blocks);  // 6 * 2 / 256
  CHECK(one(pair(2, 8), {.family = 7}).over == Over::nothing);
  CHECK(one(pair(2, 5)).over == Over::nothing);
  CHECK(one(pair(std::numeric_limits<double>::infinity(), 8)).over == Over::nothing);
  Pair drawn = pair(2, 8);
  drawn.a.drawn = true;
  CHECK(one(drawn).over == Over::nothing);
}

TEST_CASE("logarithms count where they agree that the configuration is worse, at twice their p-value") {
  // One large difference hides seven small ones: the sum of -3 and 7 * 0.5 is reached by most choices of signs.
  std::vector<double> huge(8, 1.5), ones(8, 1);
  huge[0] = -2;
  Pair pair{with_blocks({}, huge), with_blocks({}, ones), std::nullopt};
  const double means = one(pair).p_value;
  const std::vector<double> zeros(8, 0);
  pair.a.log_blocks = {std::vector<double>(8, 1), ones}, pair.reference.log_blocks = {zeros, ones};
  CHECK(means > 4. / 256);
  CHECK(one(pair).p_value == 4. / 256);  // 2 * 2 / 2^8
  pair.a.log_blocks.sums = std::vector<double>(8, -1);
  CHECK(one(pair).p_value == means);
}

TEST_CASE("the value of a configuration without draws stands for each seed") {
  Values drawn{.seeds = 2, .drawn = true, .blocks = {{1, 3, 1, 3}, {1, 1, 1, 1}}}, fixed{.blocks = {{5, 6}, {1, 1}}};
  const auto sums = paired(fixed, drawn);
  REQUIRE(sums);
  CHECK(sums->a == std::vector<double>{5, 5, 6, 6});
  CHECK(sums->b == drawn.blocks.sums);
  CHECK(sums->drawn);
  drawn.blocks.counts[0] = 2;
  CHECK(!paired(fixed, drawn));  // other observations
}

TEST_CASE("Holm's p-values, and the levels of the intervals that agree with them: by hand") {
  const double p[] = {0.04, NAN, 0.01, 0.03};
  const auto three = adjust(p);
  CHECK(three[2].p == Approx(0.03));
  CHECK(three[3].p == Approx(0.06));
  CHECK(three[0].p == Approx(0.06));
  CHECK(std::isnan(three[1].p));
  CHECK(three[1].level == 0.95);
  CHECK(three[2].level == Approx(1 - 0.05 / 3));
  CHECK(three[3].level == Approx(1 - 0.05 / 2));  // the first that is not significant
  CHECK(three[0].level == three[3].level);
  for (const Adjusted& one : adjust(std::vector{0.04, 0.01}, 6)) CHECK(one.level == Approx(1 - 0.05 / 6));
}

TEST_CASE("an interval holds no difference exactly where the adjusted p-value is above 5 %") {
  for (std::uint32_t trial = 0; trial < 200; ++trial) {
    std::vector<Test> tests;
    std::vector<double> p_values;
    for (std::uint32_t i = 0; i < 6; ++i) {
      std::vector<double> a;
      for (std::uint32_t layer = 0; layer < 4; ++layer) {
        const PhiloxBlock words = philox4x32({{layer, i, trial, 0}}, {3, 3});
        a.push_back(std::exp(uniform52(words.x[0], words.x[1]) - 0.1 * i));
      }
      tests.push_back(one({on_places(a), on_places({1, 1, 1, 1}), four_layers}));
      p_values.push_back(tests.back().p_value);
    }
    const auto adjusted = adjust(p_values);
    for (std::size_t i = 0; i < tests.size(); ++i) {
      const Interval interval = tests[i].places.interval_at(adjusted[i].level);
      CHECK((interval.lo <= 0 && 0 <= interval.hi) == (adjusted[i].p > decided_at));
    }
  }
}

TEST_CASE("the best by the mean that is tested; by all values where a ratio is missing that could be the best") {
  const Values even = on_places({1, 1, 1, 1}), often_lower = on_places({0.1, 0.1, 0.1, 10});
  const auto best = [](std::vector<const Values*> group, std::optional<PlaceSample> sample, Scale scale = {}) {
    const Best found = best_of(group, sample, scale);
    return std::pair(found.index, found.over_places);
  };
  using Found = std::pair<std::size_t, bool>;
  CHECK(best({&even, &often_lower}, four_layers) == Found{1, true});  // 0.316 and 1
  CHECK(best({&even, &often_lower}, std::nullopt) == Found{0, false});
  CHECK(best({&even, &often_lower}, four_layers, {.larger = true}) == Found{0, true});
  CHECK(best({&even, &often_lower}, four_layers, {.ratios = false}) == Found{0, true});
  const Values worse = on_places({0, 4, 4, 4}), lower = on_places({0, 0.1, 0.1, 0.1});
  CHECK(best({&worse, &even, &often_lower}, four_layers) == Found{2, true});
  CHECK(best({&lower, &even, &often_lower}, four_layers) == Found{0, false});
  CHECK(std::exp(over_places(often_lower, {})) == Approx(std::pow(0.01, 0.25)));
  CHECK(std::isnan(over_places(lower, {})));
  CHECK(over_places(on_places({1e-9, 1}), {.least = 1e-8}) == Approx(std::log(1e-8) / 2));
}
