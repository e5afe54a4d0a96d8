// SPDX-License-Identifier: Apache-2.0
// The statistical tests of the checks: hand-computed values, and rates of false alarms.
#include <kvbench/bounds/law_tests.hpp>

#include <array>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include <kvbench/core/statistics.hpp>

using namespace kvbench;

TEST_CASE("Bernstein's radius is where its tail is the probability") {
  const double radius = bernstein_radius(0.01, 2, 0.5);
  CHECK(bernstein_tail(radius, 2, 0.5) == doctest::Approx(0.01));
  // Variance alone: 2 exp(-x^2 / 2v), so x = sqrt(2 v ln 200).
  CHECK(bernstein_radius(0.01, 2, 0) == doctest::Approx(std::sqrt(4 * std::log(200.0))));
  CHECK(bernstein_tail(-1, 2, 0.5) == 1);
  CHECK(bernstein_tail(0.1, 0, 0) == 0);
}

TEST_CASE("runs of equal weight are divided by weight") {
  const std::array weights = {1.0, 1.0, 1.0, 1.0, 4.0, 4.0};
  CHECK(equal_runs(weights, 3) == std::vector<std::size_t>{0, 0, 0, 0, 1, 2});
}

namespace {

constexpr int repeats = 20000;

/// Share of p-values below `level`, divided by `level`; at most 1 for a valid test. Allows five standard errors.
void check_false_alarms(const std::vector<double>& p_values, double level) {
  double alarms = 0;
  for (const double p : p_values) alarms += p < level ? 1 : 0;
  const double expected = level * static_cast<double>(p_values.size());
  MESSAGE("false alarms at " << level << ": " << alarms << " of " << p_values.size());
  CHECK(alarms <= expected + 5 * std::sqrt(expected));
}

/// p-values of the mean of 400 numbers drawn by `draw`, of mean 1 and relative variance `variance`.
template <class F>
std::vector<double> square_tests(double variance, F draw) {
  std::mt19937_64 engine(3);
  std::vector<double> p_values;
  for (int i = 0; i < repeats; ++i) {
    double sum = 0;
    for (int j = 0; j < 400; ++j) sum += draw(engine);
    p_values.push_back(mean_of_squares_test(sum / 400, variance / 400, 0));
  }
  return p_values;
}

}  // namespace

TEST_CASE("false alarms of the stratified chi-square stay at the level") {
  std::mt19937_64 engine(1);
  std::vector<double> p_values;
  for (int i = 0; i < repeats / 4; ++i) {
    std::vector<Stratum> strata;
    for (const std::size_t cells : {3u, 20u}) {
      Stratum stratum{std::vector<double>(cells), std::vector<double>(cells, 1.0 / static_cast<double>(cells))};
      for (int draw = 0; draw < 250; ++draw) stratum.counts[engine() % cells] += 1;
      strata.push_back(std::move(stratum));
    }
    p_values.push_back(stratified_chi_square(strata));
  }
  check_false_alarms(p_values, 0.01);
  check_false_alarms(p_values, 0.001);
}

TEST_CASE("false alarms of the test of mean squares stay near the level") {
  SUBCASE("squares of normal numbers: the Gamma law is exact") {
    const auto p = square_tests(2, [normal = std::normal_distribution<>()](auto& engine) mutable {
      const double x = normal(engine);
      return x * x;
    });
    check_false_alarms(p, 0.01);
    check_false_alarms(p, 0.001);
  }
  SUBCASE("a rare event: one seed in 16, the largest relative variance that is tested at 400 seeds") {
    const auto p = square_tests(
        15, [rare = std::bernoulli_distribution(1 / 16.0)](auto& engine) mutable { return rare(engine) ? 16.0 : 0.0; });
    check_false_alarms(p, 0.01);
    check_false_alarms(p, 0.001);
  }
}

TEST_CASE("rounding decides where squares are constant") {
  CHECK(mean_of_squares_test(0.99999, 0, 1e-4) == 1);
  CHECK(mean_of_squares_test(1.001, 0, 1e-4) == 0);
  CHECK(mean_of_squares_test(0.999, 0, 1e-4) == 0);
  CHECK(mean_of_squares_test(1.3, 0.01, 0.1) == doctest::Approx(mean_of_squares_test(1.2, 0.01, 0)));
}
