// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/contrast.hpp>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>

using namespace kvbench;
using doctest::Approx;

namespace {

/// A uniform number in (0, 1) for each unit of each trial.
double draw(std::uint32_t trial, std::uint32_t unit) {
  const PhiloxBlock w = philox4x32({{trial, unit, 0, 0}}, {5, 17});
  return uniform52(w.x[0], w.x[1]);
}

Verdict judged(const Contrast& c) {
  CheckRow row{.kind = CheckKind::claim};
  set_claim(row, c, "difference");
  judge({&row, 1}, 1e-3);
  return row.verdict;
}

}  // namespace

// Differences 1, 2, 3: sum 6, squares 14, T^2 = 36/14, p = exp(-18/14).
TEST_CASE("the p-value is Hoeffding's bound for random signs") {
  const std::vector<double> up = {1, 2, 3};
  const Contrast c = contrast(up);
  CHECK(c.units == 3);
  CHECK(c.mean == Approx(2));
  CHECK(c.median == Approx(2));
  CHECK(c.positive == 3);
  CHECK(c.p_for == Approx(std::exp(-18.0 / 14)));
  CHECK(c.p_against == 1);
  const std::vector<double> down = {-1, -2, -3};
  CHECK(contrast(down).p_against == Approx(std::exp(-18.0 / 14)));
  CHECK(contrast(down).p_for == 1);
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

// 4000 trials of no difference, symmetric and skewed: at most the share of the level may be significant, and a difference must be detected.
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
        alarms += contrast(differences, 0).p_against < 0.05;
      }
      CHECK(binomial_tail(alarms, trials, 0.05) > 1e-4);
    }
  }
}
