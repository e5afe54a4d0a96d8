// SPDX-License-Identifier: Apache-2.0
// Tests that keep their level at every sample size and for heavy tails. None refers a statistic to its limiting law.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <span>
#include <vector>

namespace kvbench::bounds {

/// Bernstein's inequality: P(|X| >= deviation) <= 2 exp(-deviation^2 / (2 (variance + largest * deviation / 3))) for a
/// sum X of independent terms of mean 0 that are at most `largest` in absolute value, whose variances sum to
/// `variance`. The same holds for |X|_2 of a sum of vectors with E|X|^2 = variance (Pinelis, Ann. Probab. 22, 1994), at
/// any sample size.
double bernstein_tail(double deviation, double variance, double largest);
/// The deviation at which this bound equals `probability`.
double bernstein_radius(double probability, double variance, double largest);

/// Two-sided p-value of "each number is as likely as its negative, given the numbers before it", whatever the numbers
/// are: with T = sum / sqrt(sum of squares), P(|T| >= t) <= 2 exp(-t^2 / 2) (de la Pena, Ann. Probab. 27, 1999).
/// Numbers of at most `rounding` are 0.
double symmetry_test(std::span<const double> numbers, double rounding = 1e-12);

/// Tests that events have given probabilities, each given the events before it. For every lambda the product of
/// exp(lambda w (hit - p)) over its expectation has the mean 1; the p-value is the reciprocal of the largest of these
/// products over a fixed set of lambda, times their number (Markov).
class EventTest {
 public:
  /// weight: known before the event, at most 1 in absolute value.
  void add(double weight, double p, bool hit);
  double p_value() const;

 private:
  std::array<double, 18> log_products_{};
};

/// Tests the law of independent real numbers X of mean 0 by their characteristic function f: at the three scales u = 1,
/// 4 and 16 over the known standard deviation, cos(u X) has the mean Re f(u) and E cos^2 = (1 + Re f(2 u)) / 2, so that
/// Bernstein's inequality bounds the deviation of its average. The cosine is bounded, so that rare large X need no
/// special treatment.
class CosineTest {
 public:
  /// rounding: how far an X may be off.
  template <class CharacteristicFunction>
  CosineTest(double deviation, double rounding, CharacteristicFunction f) : rounding_(rounding) {
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      const double u = std::pow(4.0, static_cast<double>(i)) / deviation;
      scales_[i] = {.u = u, .expected = std::real(f(u)), .twice = std::real(f(2 * u))};
    }
  }
  void add(double x);
  /// Adjusted for the number of scales.
  double p_value() const;

 private:
  struct Scale {
    double u = 0, expected = 0, twice = 0, sum = 0;
  };
  std::array<Scale, 3> scales_;
  double rounding_ = 0, count_ = 0;
};

/// Bound on the probability that the sum of x_i with random signs is as far from 0 as the sum of x_i, on the same side:
/// with T = sum / sqrt(sum of squares), Hoeffding's inequality gives exp(-T^2 / 2). Values that are not finite are left
/// out.
double random_sign_bound(std::span<const double> x);

/// Divides the elements into `count` runs of neighbours of about equal total weight: the run, 0 .. count-1, of each
/// element.
std::vector<std::size_t> equal_runs(std::span<const double> weights, std::size_t count);

}  // namespace kvbench::bounds
