// SPDX-License-Identifier: Apache-2.0
// The statistical tests of the checks: hand-computed values, and rates of false alarms.
#include <array>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/bounds/trials/law_tests.hpp>
#include <kvbench/bounds/trials/rates.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/kernels/philox.hpp>

#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using doctest::Approx;

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
std::vector<double> p_values_of(F one_test, int times = repeats) {
  std::mt19937_64 engine(3);
  std::vector<double> p_values;
  for (int i = 0; i < times; ++i) p_values.push_back(one_test(engine));
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
      const auto p_value = [&](auto& engine) {
        EventTest test;
        std::bernoulli_distribution event(p);
        double weight = 1;
        for (int i = 0; i < count; ++i) {
          const bool hit = event(engine);
          test.add(weight, p, hit);
          weight = hit ? -weight : weight;
        }
        return test.p_value();
      };
      const auto p_values = p_values_of(p_value, repeats / 5);  // each takes a hundred logarithms an event
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

namespace {

/// A uniform number in (0, 1) for each unit of each trial.
double draw(std::uint32_t trial, std::uint32_t unit) {
  const PhiloxBlock w = philox4x32({{trial, unit, 0, 0}}, {5, 17});
  return uniform52(w.x[0], w.x[1]);
}

Verdict judged(const Contrast& c) {
  return testing::CheckRun(1)([&](CheckContext& context) { add_claim(context, {}, c, "difference"); }).front().verdict;
}

}  // namespace

// Of the 8 choices of signs of 1, 2, 3, two give a sum of +-6.
TEST_CASE("the p-value is that of sign flips") {
  const std::vector<double> up = {1, 2, 3};
  const Contrast c = contrast(up);
  CHECK(c.units == 3);
  CHECK(c.mean == Approx(2));
  CHECK(c.median == Approx(2));
  CHECK(c.positive == 3);
  CHECK(c.p_value == 0.25);
  CHECK(c.p_least == 0.25);
  // Mean 2, standard error 1 / sqrt(3): 3 (2.8 / (2 sqrt(3)))^2 = 1.96.
  CHECK(c.units_needed == 2);
  const std::vector<double> mixed = {1, 2, -4};  // +-1 or further from 0: 8 of 8
  CHECK(contrast(mixed).p_value == 1);
  CHECK(contrast(mixed).mean == Approx(-1.0 / 3));
}

TEST_CASE("units without a value are left out; no verdict without units or for equal units") {
  const std::vector<double> some = {NAN, 4, NAN}, none = {NAN}, equal = {0, 0, 0};
  CHECK(contrast(some).units == 1);
  CHECK(contrast(some).mean == 4);
  CHECK(judged(contrast(none)) == Verdict::untestable);
  CHECK(judged(contrast(equal)) == Verdict::undecided);
}

TEST_CASE("a clear difference in the right direction supports a claim, one in the wrong direction contradicts it") {
  std::vector<double> up, down;
  for (std::uint32_t u = 0; u < 60; ++u) {
    up.push_back(0.2 + draw(0, u));
    down.push_back(-0.2 - draw(0, u));
  }
  CHECK(judged(contrast(up)) == Verdict::supported);
  CHECK(judged(contrast(down)) == Verdict::contradicted);
}

// 2000 trials of no difference. Sign flips are exact for symmetric differences, and may at most double the level for
// skewed ones.
TEST_CASE("false alarms stay below the level, for few units, heavy tails and skewed differences") {
  for (const int law : {0, 1, 2}) {
    for (const std::uint32_t units : {5u, 40u, 240u}) {
      CAPTURE(law);
      CAPTURE(units);
      int alarms = 0;
      constexpr int trials = 2000;
      for (std::uint32_t trial = 0; trial < trials; ++trial) {
        std::vector<double> differences;
        for (std::uint32_t u = 0; u < units; ++u) {
          const double x = draw(trial, u + 1000 * static_cast<std::uint32_t>(law)) - 0.5;
          const double skewed = -std::log(x + 0.5) - 1;  // exponential minus its mean
          differences.push_back(law == 0 ? x : law == 1 ? x / (0.501 - std::abs(x)) : skewed);
        }
        alarms += contrast(differences, 0).p_value <= 0.05;
      }
      CHECK(binomial_tail(alarms, trials, law == 2 ? 0.1 : 0.05) > 1e-4);
    }
  }
}

TEST_CASE("the interval of a quantile lies between order statistics") {
  // 1 .. 100 and q = 1/2: P(B < 40) = 1.76 % and P(B < 41) = 2.84 %, so ranks 40 and, by symmetry, 61.
  std::vector<double> numbers;
  for (int i = 100; i >= 1; --i) numbers.push_back(i);
  const QuantileEstimate median = estimate_quantile(numbers, 0.5);
  CHECK(median.value == Approx(50.5));
  CHECK(median.interval.lo == 40);
  CHECK(median.interval.hi == 61);
  // With ten numbers no rank bounds the 90 % quantile from above: P(B >= 10) = 35 %.
  const QuantileEstimate few = estimate_quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9);
  CHECK(std::isinf(few.interval.hi));
  CHECK(few.interval.lo == 7);
}

TEST_CASE("the rate of errors that fall like one over the root of the size") {
  std::mt19937_64 engine(2);
  std::normal_distribution<> normal;
  const std::vector<double> sizes = {4, 16, 64};
  std::vector<std::vector<double>> errors;
  for (const double size : sizes) {
    std::vector<double>& at = errors.emplace_back();
    for (int seed = 0; seed < 400; ++seed) at.push_back(normal(engine) / std::sqrt(size));
  }
  const Rate rate = error_rate(sizes, errors);
  CHECK(rate.slope == Approx(-0.5).epsilon(0.1));
  CHECK(rate.interval.lo <= -0.5);
  CHECK(rate.interval.hi >= -0.5);
  CHECK(std::isnan(error_rate(sizes, std::vector<std::vector<double>>(3, std::vector<double>(16, 0.0))).slope));
}

TEST_CASE("the size from which on a bound is informative") {
  const auto ratio = [](Index n) { return 300.0 / static_cast<double>(n); };
  CHECK(informative_size(2048, ratio).n == 512);
  const InformativeSize later = informative_size(128, ratio);
  CHECK(later.n == 0);
  CHECK(later.needed > 300);
  CHECK(later.needed < 500);
}

TEST_CASE("the largest constant of a claim is named") {
  std::vector<CheckRow> rows(3);
  for (std::size_t i = 0; i < 3; ++i) {
    rows[i].check = "a", rows[i].part = constant_part, rows[i].measured = static_cast<double>(i % 2);
  }
  name_largest_constants(rows);
  CHECK(rows[0].text.empty());
  CHECK(rows[1].text == "; the largest of 3 subjects and sizes");
}
