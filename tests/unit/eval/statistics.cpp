// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/statistics.hpp>

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::eval;

TEST_CASE("McNemar's mid-p of small tables") {
  CHECK(mcnemar_mid_p(0, 0) == 1);
  CHECK(mcnemar_mid_p(3, 3) == doctest::Approx(1));
  // 5 to 0: 2 / 32 exactly, minus half of the two tails of 1 / 32.
  CHECK(mcnemar_mid_p(5, 0) == doctest::Approx(1.0 / 32));
  CHECK(mcnemar_mid_p(0, 5) == doctest::Approx(1.0 / 32));
  // 6 to 1 of 7: 2 P(X = 0) + P(X = 1) = (2 + 7) / 128.
  CHECK(mcnemar_mid_p(6, 1) == doctest::Approx(9.0 / 128));
  // 12 to 2 of 14: (2 (1 + 14) + 91) / 16384.
  CHECK(mcnemar_mid_p(12, 2) == doctest::Approx(121.0 / 16384));
}

TEST_CASE("the equivalence test of a mean") {
  // Mean 0, standard error 0.1 (deviations +-0.1 * sqrt(3) of four values): t = margin / 0.1 with 3 degrees of freedom.
  const double d = 0.1 * std::sqrt(3.0);
  const std::vector<double> values = {d, -d, d, -d};
  CHECK(tost_mean_p(values, 0.2353363) ==
        doctest::Approx(0.05).epsilon(1e-5));   // the 95 % quantile of t(3) is 2.353363
  CHECK(tost_mean_p(values, 0.5841) < 0.0051);  // 99.5 %: 5.8409
  std::vector<double> shifted = values;
  for (double& x : shifted) x -= 0.3;
  CHECK(tost_mean_p(shifted, 0.5353363) == doctest::Approx(0.05).epsilon(1e-5));
  CHECK(tost_mean_p(shifted, 0.3) == doctest::Approx(0.5));
  CHECK(tost_mean_p(shifted, 0.1) > 0.5);
  CHECK(std::isnan(tost_mean_p(std::vector{0.1}, 0.2)));
  CHECK(tost_mean_p(std::vector{0.1, 0.1}, 0.2) == 0);
  CHECK(tost_mean_p(std::vector{0.1, 0.1}, 0.1) == 1);
}

TEST_CASE("the equivalence test of proportions needs enough items, even without a flip") {
  CHECK(tost_flips_p(0, 0, 10, 0.05) == doctest::Approx(std::pow(0.95, 10)));
  CHECK(tost_flips_p(0, 0, 58, 0.05) > 0.05);
  CHECK(tost_flips_p(0, 0, 59, 0.05) < 0.05);
  // Flips in both directions do not cancel: 1 of 59 in each is more than none.
  CHECK(tost_flips_p(1, 1, 59, 0.05) == doctest::Approx(std::pow(0.95, 59) + 59 * 0.05 * std::pow(0.95, 58)));
  CHECK(tost_flips_p(59, 0, 59, 0.05) == 1);
  CHECK(std::isnan(tost_flips_p(0, 0, 0, 0.05)));
}

TEST_CASE("ranks with ties") {
  CHECK(ranks_of(std::vector{3.0, 1.0, 3.0, 2.0}) == std::vector{3.5, 1.0, 3.5, 2.0});
  CHECK(ranks_of(std::vector{5.0, 5.0, 5.0}) == std::vector{2.0, 2.0, 2.0});
  CHECK(ranks_of(std::vector<double>{}).empty());
}

TEST_CASE("Spearman's correlation with ties, and of monotone relations") {
  const std::vector<double> x = {1, 2, 3, 4};
  CHECK(spearman(x, std::vector{1.0, 10.0, 100.0, 1e9}) == doctest::Approx(1));
  CHECK(spearman(x, std::vector{4.0, 3.0, 2.0, 1.0}) == doctest::Approx(-1));
  // Ranks 1 2 3 4 and 1.5 1.5 3 4: covariance 4.5, variances 5 and 4.5.
  CHECK(spearman(x, std::vector{7.0, 7.0, 8.0, 9.0}) == doctest::Approx(4.5 / std::sqrt(22.5)));
  // Without ties: 1 - 6 sum d^2 / (n (n^2 - 1)) with d = (1, 1, 1, 1) -> 1 - 24 / 60.
  CHECK(spearman(x, std::vector{2.0, 1.0, 4.0, 3.0}) == doctest::Approx(0.6));
  CHECK(std::isnan(spearman(x, std::vector{1.0, 1.0, 1.0, 1.0})));
  CHECK(std::isnan(spearman(std::vector{1.0, 2.0}, std::vector{1.0, 2.0})));
}
