// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/place_test.hpp>

#include <cmath>
#include <numbers>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>

using namespace kvbench;
using doctest::Approx;

TEST_CASE("variances of layers and of texts add up: by hand") {
  // Three texts on two layers. Means of layers 3 and 1: variance of their mean 1. Means of texts 1, 2, 3: variance of
  // their mean 1/3.
  const std::vector<double> x = {2, 0, 3, 1, 4, 2};
  const PlaceTest test = place_test(x, 2, true);
  CHECK(test.layers == 2);
  CHECK(test.texts == 3);
  CHECK(test.mean == 2);
  const double v = 1 + 1. / 3, degrees = v * v / (1 + 1. / 18);
  CHECK(degrees == Approx(1.6842).epsilon(1e-4));
  CHECK(test.interval.hi - 2 == Approx(5.1677 * std::sqrt(v)).epsilon(2e-3));  // between t_1 = 12.71 and t_2 = 4.303
  CHECK(test.p_value > 0.05);
}

TEST_CASE("two texts are no sample of texts; one layer is no sample of layers") {
  const std::vector<double> two = {1, 2, 1, 2};
  CHECK(place_test(two, 2, true).tested());
  CHECK(place_test(two, 2, true).p_value == place_test(std::vector<double>{1, 2}, 2, true).p_value);
  CHECK(units_of(place_test(two, 2, true), 30) == "2 of 30 layers");
  CHECK(units_of(place_test(two, 2, true), 2) == "all 2 layers");
  CHECK(!place_test(two, 2, false).tested());
  CHECK(place_test(two, 1, true).tested());  // four texts of one layer
  CHECK(units_of(place_test(two, 1, true), 30) == "4 texts");
  CHECK(place_test(two, 1, true).units() == 4);
  CHECK(place_test(two, 1, true).mean == 1.5);
  CHECK(!place_test(std::vector<double>{1, 2}, 1, true).tested());
}

TEST_CASE("equal differences are certain, zeros are none") {
  CHECK(place_test(std::vector<double>{2, 2, 2}, 3, true).p_value == 0);
  CHECK(place_test(std::vector<double>{2, 2, 2}, 3, true).interval.lo == 2);
  CHECK(place_test(std::vector<double>{0, 0, 0}, 3, true).p_value == 1);
}

TEST_CASE("intervals cover the mean over all layers, and over texts, in about 95 % of the samples") {
  // 20 layers with independent effects, of which 5 evenly spaced ones are seen, on 4 texts with effects of their own.
  int covered = 0;
  constexpr int trials = 1000;
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    std::uint32_t next = 0;
    const auto normal = [&] {
      const PhiloxBlock words = philox4x32({{next++, trial, 0, 0}}, {5, 17});
      return std::sqrt(-2 * std::log(uniform52(words.x[0], words.x[1]))) *
             std::cos(2 * std::numbers::pi * uniform52(words.x[2], words.x[3]));
    };
    std::vector<double> layers, seen;
    for (int l = 0; l < 20; ++l) layers.push_back(normal());
    const double truth = mean(layers);
    for (int text = 0; text < 4; ++text) {
      const double own = normal() / 2;
      for (std::size_t l = 2; l < 20; l += 4) seen.push_back(layers[l] + own + normal() / 4);
    }
    const PlaceTest test = place_test(seen, 5, true);
    covered += test.interval.lo <= truth && truth <= test.interval.hi;
  }
  CHECK(covered >= 930);
  CHECK(covered <= 990);
}
