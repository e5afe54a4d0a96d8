// SPDX-License-Identifier: Apache-2.0
// The statistical tests of the checks: hand-computed values, and rates of false alarms.
#include <kvbench/bounds/trials/law_tests.hpp>

#include <array>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include <kvbench/core/statistics.hpp>

using namespace kvbench;
using namespace kvbench::bounds;

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

/// One test of `count` numbers, many times.
template <class F>
std::vector<double> p_values_of(F one_test) {
  std::mt19937_64 engine(3);
  std::vector<double> p_values;
  for (int i = 0; i < repeats; ++i) p_values.push_back(one_test(engine));
  return p_values;
}

/// e^{3 z} with a random sign: most of a sum is its largest term.
double heavy(std::mt19937_64& engine) {
  std::normal_distribution<> normal;
  return std::exp(3 * normal(engine)) * (engine() % 2 == 0 ? 1 : -1);
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

TEST_CASE("the symmetry of ten numbers of any size: no false alarms; a shift is found") {
  for (const int count : {10, 60}) {
    const auto p = p_values_of([&](auto& engine) {
      std::vector<double> numbers;
      for (int i = 0; i < count; ++i) numbers.push_back(heavy(engine));
      return symmetry_test(numbers);
    });
    for (const double level : {0.01, 0.001}) check_false_alarms(p, level);
  }
  CHECK(symmetry_test(std::vector<double>(10, 2.0)) == doctest::Approx(2 * std::exp(-5.0)));
  CHECK(symmetry_test(std::vector<double>(10, 1e-15)) == 1);
  CHECK(symmetry_test({}) == 1);
}

TEST_CASE(
    "rare and common events: no false alarms, at ten events and with adapted weights; another probability is found") {
  for (const double p : {0.001, 0.3}) {
    for (const int count : {10, 100}) {
      const auto p_values = p_values_of([&](auto& engine) {
        EventTest test;
        std::bernoulli_distribution event(p);
        double weight = 1;
        for (int i = 0; i < count; ++i) {
          const bool hit = event(engine);
          test.add(weight, p, hit);
          weight = hit ? -weight : weight;
        }
        return test.p_value();
      });
      for (const double level : {0.01, 0.001}) check_false_alarms(p_values, level);
    }
  }
  EventTest wrong;
  for (int i = 0; i < 1000; ++i) wrong.add(1, 0.5, i % 5 < 3);
  CHECK(wrong.p_value() < 1e-6);
}

TEST_CASE("cosines: no false alarms where one seed in 1000 holds the variance; another scale is found") {
  // 31.6 with probability 1/2000 and -31.6 with the same: variance 1.
  const double size = std::sqrt(1000.0);
  const auto rare = [&](double u) { return 0.999 + 0.001 * std::cos(u * size); };
  for (const int count : {10, 400}) {
    const auto p_values = p_values_of([&](auto& engine) {
      CosineTest test(1, 0, rare);
      for (int i = 0; i < count; ++i) test.add(engine() % 1000 == 0 ? size : 0);
      return test.p_value();
    });
    for (const double level : {0.01, 0.001}) check_false_alarms(p_values, level);
  }
  // Normal numbers, whose characteristic function is exp(-u^2 / 2), and normal numbers of twice their variance.
  for (const double deviation : {1.0, std::sqrt(2.0)}) {
    CosineTest test(1, 0, [](double u) { return std::exp(-u * u / 2); });
    std::mt19937_64 engine(1);
    std::normal_distribution<> normal(0, deviation);
    for (int i = 0; i < 400; ++i) test.add(normal(engine));
    CHECK((test.p_value() < 1e-6) == (deviation > 1));
  }
}
