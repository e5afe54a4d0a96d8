// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/statistics.hpp>
#include <kvbench/kernels/philox.hpp>

#include <cmath>

#include <doctest/doctest.h>

using namespace kvbench;

TEST_CASE("quantiles interpolate between order statistics") {
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({1, 2, 3, 4}, 0.5) == doctest::Approx(2.5));
  CHECK(quantile({1, 2, 3, 4}, 0.9) == doctest::Approx(3.7));
  CHECK(quantile({5}, 0.99) == 5);
  CHECK(quantile({1, 2}, 1.0) == 2);
}

TEST_CASE("one block has no spread, two have") {
  const double sum[] = {6, 0}, count[] = {2, 2};
  const Interval one = bootstrap_mean(std::span(sum).first(1), std::span(count).first(1), 1);
  CHECK(one.lo == 3);
  CHECK(one.hi == 3);
  const Interval two = bootstrap_mean(sum, count, 1);
  CHECK(two.lo == 0);
  CHECK(two.hi == 3);
}

TEST_CASE("seeds that agree add no spread, seeds that differ do") {
  const double count[] = {1, 1, 1, 1};
  const double same[] = {1, 1, 1, 1}, by_seed[] = {0, 2, 0, 2};  // [2 blocks][2 seeds]
  CHECK(bootstrap_mean(same, count, 2).lo == 1);
  CHECK(bootstrap_mean(same, count, 2).hi == 1);
  CHECK(bootstrap_mean(by_seed, count, 2).lo == 0);
  CHECK(bootstrap_mean(by_seed, count, 2).hi == 2);
}

TEST_CASE("the bootstrap covers the mean of Gaussian-like data about 95 % of the time") {
  // Sums of 12 hashed uniforms; 400 samples of 40 blocks. Binomial sd of the coverage is about 1.3 %, percentile bootstrap
  // under-covers by about 1-2 % at 40 blocks.
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

TEST_CASE("binomial tails") {
  CHECK(binomial_tail(0, 10, 0.1) == 1);
  CHECK(binomial_tail(1, 10, 0.1) == doctest::Approx(1 - std::pow(0.9, 10)));
  CHECK(binomial_tail(10, 10, 0.5) == doctest::Approx(std::pow(0.5, 10)));
  CHECK(binomial_tail(1, 10, 0) == 0);
  CHECK(binomial_tail(3, 10, 1) == 1);
}

TEST_CASE("chi-square of counts against a law") {
  // Expected 25 each: 4/25 + 4/25 + 9/25 + 9/25 = 1.04 with 3 degrees of freedom.
  const double counts[] = {23, 27, 22, 28}, fair[] = {0.25, 0.25, 0.25, 0.25};
  CHECK(chi_square_fit(counts, fair) == doctest::Approx(0.7916).epsilon(1e-3));
  const double loaded[] = {50, 20, 15, 15};
  CHECK(chi_square_fit(loaded, fair) < 1e-6);
  const double impossible[] = {50, 50, 0, 1}, law[] = {0.5, 0.5, 0, 0};
  CHECK(chi_square_fit(impossible, law) == 0);
  // Four cells of 2 expected each are one bin of 8 beside the first: (0-8)^2/8 + (100-92)^2/92, 1 degree of freedom.
  const double rare[] = {100, 0, 0, 0, 0}, rare_law[] = {0.92, 0.02, 0.02, 0.02, 0.02};
  CHECK(chi_square_fit(rare, rare_law) == doctest::Approx(0.00319).epsilon(0.01));
}

TEST_CASE("chi-square keeps its level where the law holds") {
  // 2000 tests of 200 draws from 8 unequal cells: 5 % of the p-values lie below 5 %, give or take 1 %.
  const double law[] = {0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02};
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
    below += chi_square_fit(counts, law) < 0.05;
  }
  CHECK(below > 70);
  CHECK(below < 130);
}

TEST_CASE("slope of a line") {
  const double x[] = {0, 1, 2, 3}, y[] = {1, -1, -3, -5};
  CHECK(slope(x, y) == doctest::Approx(-2));
}
