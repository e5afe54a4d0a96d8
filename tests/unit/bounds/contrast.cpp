// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/contrast.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/distributions.hpp>
#include <kvbench/kernels/philox.hpp>
#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using doctest::Approx;

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

// 4000 trials of no difference. Sign flips are exact for symmetric differences, and may at most double the level for
// skewed ones.
TEST_CASE("false alarms stay below the level, for few units, heavy tails and skewed differences") {
  for (const int law : {0, 1, 2}) {
    for (const std::uint32_t units : {5u, 40u, 240u}) {
      CAPTURE(law);
      CAPTURE(units);
      int alarms = 0;
      constexpr int trials = 4000;
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
