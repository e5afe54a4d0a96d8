// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/place_test.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/kernels/philox.hpp>

using namespace kvbench;
using doctest::Approx;

TEST_CASE("quantiles interpolate between order statistics") {
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({1, 2, 3, 4}, 0.5) == doctest::Approx(2.5));
  CHECK(quantile({1, 2, 3, 4}, 0.9) == doctest::Approx(3.7));
  CHECK(quantile({5}, 0.99) == 5);
  CHECK(quantile({1, 2}, 1.0) == 2);
}

TEST_CASE("two blocks give an interval, one block none, whatever its seeds") {
  const double sum[] = {6, 0}, count[] = {2, 2};
  const Interval one = bootstrap_mean(std::span(sum).first(1), std::span(count).first(1), 1);
  CHECK(std::isnan(one.lo));
  CHECK(std::isnan(one.hi));
  CHECK(std::isnan(bootstrap_mean(sum, count, 2).lo));  // [1 block][2 seeds]
  const double second_empty[] = {2, 0};
  CHECK(std::isnan(bootstrap_mean(sum, second_empty, 1).lo));
  const Interval two = bootstrap_mean(sum, count, 1);
  CHECK(two.lo == 0);
  CHECK(two.hi == 3);
}

TEST_CASE("there is no interval where no count is positive") {
  const double sums[] = {1, 2}, counts[] = {-1, -2};
  CHECK(std::isnan(bootstrap_mean(sums, counts, 1).lo));
  CHECK(std::isnan(bootstrap_mean(sums, counts, 1).hi));
}

TEST_CASE("equal seeds add no variance, different seeds do") {
  const double count[] = {1, 1, 1, 1};
  const double same[] = {1, 1, 1, 1}, by_seed[] = {0, 2, 0, 2};  // [2 blocks][2 seeds]
  CHECK(bootstrap_mean(same, count, 2).lo == 1);
  CHECK(bootstrap_mean(same, count, 2).hi == 1);
  CHECK(bootstrap_mean(by_seed, count, 2).lo == 0);
  CHECK(bootstrap_mean(by_seed, count, 2).hi == 2);
}

TEST_CASE("the bootstrap covers the mean of Gaussian-like data about 95 % of the time") {
  // Sums of 12 hashed uniforms; 400 samples of 40 blocks. Binomial sd of the coverage is about 1.3 %, percentile
  // bootstrap under-covers by about 1-2 % at 40 blocks.
  std::uint64_t state = 1;
  auto uniform = [&] {
    return static_cast<double>((state = state * 6364136223846793005u + 1442695040888963407u) >> 11) * 0x1p-53;
  };
  int covered = 0;
  for (int sample = 0; sample < 400; ++sample) {
    std::vector<double> sums(40), counts(40, 1.0);
    for (double& s : sums) {
      s = -6;
      for (int i = 0; i < 12; ++i) s += uniform();
    }
    const Interval ci = bootstrap_mean(sums, counts, 1);
    covered += ci.lo <= 0 && 0 <= ci.hi;
  }
  CHECK(covered > 400 * 0.88);
  CHECK(covered < 400 * 0.99);
}

TEST_CASE("Student's interval agrees with tables") {
  const std::vector<double> values = {1, 2, 3};  // standard error 1/sqrt(3), t(2, 0.975) = 4.30265
  CHECK(student_interval(values).lo == doctest::Approx(2 - 4.30265 / std::sqrt(3)).epsilon(1e-5));
  CHECK(student_interval(values).hi == doctest::Approx(2 + 4.30265 / std::sqrt(3)).epsilon(1e-5));
}

TEST_CASE("Clopper-Pearson agrees with published values") {
  CHECK(clopper_pearson(0, 100).hi == doctest::Approx(0.0362).epsilon(0.002));
  CHECK(clopper_pearson(0, 299).hi == doctest::Approx(0.01226).epsilon(0.002));
  CHECK(clopper_pearson(0, 368).hi == doctest::Approx(0.00997).epsilon(0.002));
  CHECK(clopper_pearson(0, 100).lo == 0);
  CHECK(clopper_pearson(100, 100).hi == 1);
  const Interval half = clopper_pearson(5, 10);  // 0.1871 .. 0.8129
  CHECK(half.lo == doctest::Approx(0.1871).epsilon(0.001));
  CHECK(half.hi == doctest::Approx(0.8129).epsilon(0.001));
}

TEST_CASE("Holm adjusts by rank and keeps order") {
  const double p[] = {0.01, 0.04, 0.03, 0.005};
  const auto adjusted = holm(p);
  CHECK(adjusted[3] == doctest::Approx(0.02));
  CHECK(adjusted[0] == doctest::Approx(0.03));
  CHECK(adjusted[2] == doctest::Approx(0.06));
  CHECK(adjusted[1] == doctest::Approx(0.06));
}

TEST_CASE("chi-square of counts against a distribution") {
  const auto p_value = [](const std::vector<double>& counts, const std::vector<double>& law) {
    return stratified_chi_square({{Stratum{counts, law}}});
  };
  // Expected 25 each: 4/25 + 4/25 + 9/25 + 9/25 = 1.04 with 3 degrees of freedom.
  const std::vector<double> fair = {0.25, 0.25, 0.25, 0.25};
  CHECK(p_value({23, 27, 22, 28}, fair) == doctest::Approx(0.7916).epsilon(1e-3));
  CHECK(p_value({50, 20, 15, 15}, fair) < 1e-6);
  CHECK(p_value({50, 50, 0, 1}, {0.5, 0.5, 0, 0}) == 0);  // a draw of probability 0
  CHECK(p_value({3, 2}, {0.5, 0.5}) == 1);                // too few draws for two bins
  // Four cells of 3 expected each are one bin of 12 next to the first: (0-12)^2/12 + (100-88)^2/88 = 13.636 with one
  // degree. The exact variance is 2 + (1/0.12 + 1/0.88 - 4 - 4 + 2) / 100 = 2.0347: a tail a little above
  // erfc(sqrt(13.636 / 2)) = 2.22e-4.
  CHECK(p_value({100, 0, 0, 0, 0}, {0.88, 0.03, 0.03, 0.03, 0.03}) == doctest::Approx(2.42667e-4));
  // (30-20)^2/20 + (10-20)^2/20 = 10 with one degree, in each of two strata: 20 with two, p = e^-10.
  const Stratum stratum{{30, 10}, {0.5, 0.5}};
  CHECK(stratified_chi_square({{stratum, stratum}}) == doctest::Approx(std::exp(-10.0)));
}

TEST_CASE("chi-square keeps its level where the hypothesis holds") {
  // 2000 tests of 200 draws from 8 unequal cells: 5 % of the p-values are below 5 %, plus or minus 1 %.
  const std::vector<double> law = {0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02};
  int below = 0;
  for (std::uint32_t test = 0; test < 2000; ++test) {
    std::vector<double> counts(8, 0.0);
    for (std::uint32_t i = 0; i < 200; ++i) {
      const PhiloxBlock words = philox4x32({{i, test, 0, 0}}, {7, 7});
      double u = uniform52(words.x[0], words.x[1]);
      std::size_t cell = 0;
      while (cell < 7 && u >= law[cell]) u -= law[cell++];
      counts[cell] += 1;
    }
    below += stratified_chi_square({{Stratum{counts, law}}}) < 0.05;
  }
  CHECK(below > 70);
  CHECK(below < 130);
}

TEST_CASE("slope of a line") {
  const double x[] = {0, 1, 2, 3}, y[] = {1, -1, -3, -5};
  CHECK(slope(x, y) == doctest::Approx(-2));
}

TEST_CASE("binomial tails") {
  CHECK(binomial_tail(0, 10, 0.1) == 1);
  CHECK(binomial_tail(1, 10, 0.1) == doctest::Approx(1 - std::pow(0.9, 10)));
  CHECK(binomial_tail(10, 10, 0.5) == doctest::Approx(std::pow(0.5, 10)));
  CHECK(binomial_tail(1, 10, 0) == 0);
  CHECK(binomial_tail(3, 10, 1) == 1);
  CHECK(std::isnan(binomial_tail(3, 10, NAN)));
}

TEST_CASE("the other tail of a binomial law keeps its digits where it is small") {
  CHECK(binomial_head(0, 10, 0.1) == doctest::Approx(std::pow(0.9, 10)));
  CHECK(binomial_head(0, 80, 0.5) / std::pow(0.5, 80) == doctest::Approx(1));
  CHECK(binomial_head(10, 10, 0.1) == 1);
  CHECK(binomial_head(3, 10, 0) == 1);
  CHECK(binomial_head(3, 10, 1) == 0);
}

TEST_CASE("Student's t with one degree of freedom is the Cauchy distribution") {
  const auto cauchy_tail = [](double t) { return 0.5 - std::atan(t) / std::numbers::pi; };
  for (const double t : {-2.0, 0.0, 0.5, 1e6}) CHECK(student_tail(t, 1) == doctest::Approx(cauchy_tail(t)));
  CHECK(student_p(-2, 1) == doctest::Approx(2 * cauchy_tail(2)));
  CHECK(student_bound(0.5, 1) == doctest::Approx(1));
  CHECK(student_p(INFINITY, 3) == 0);
  CHECK(std::isnan(student_p(NAN, 3)));
}

// P(|X| < 1.96) = 0.95 and the symmetry of the density.
TEST_CASE("quantiles of the standard normal distribution") {
  CHECK(normal_quantile(0.975) == doctest::Approx(1.959964));
  CHECK(normal_quantile(0.5) == 0);
  CHECK(normal_quantile(0.05) == doctest::Approx(-normal_quantile(0.95)));
}

TEST_CASE("laws of beta and gamma with one parameter equal to 1") {
  CHECK(beta_quantile(0.3, 1, 1) == doctest::Approx(0.3));
  CHECK(beta_quantile(0.3, 1, 7) == doctest::Approx(1 - std::pow(0.7, 1.0 / 7)));
  CHECK(gamma_tail(2.5, 1) == doctest::Approx(std::exp(-2.5)));
  CHECK(gamma_tail(0, 3) == 1);
}

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
