// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/distributions.hpp>

#include <cmath>
#include <numbers>

#include <doctest/doctest.h>

using namespace kvbench;

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
