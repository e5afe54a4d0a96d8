// SPDX-License-Identifier: Apache-2.0
// Tails of sums of independent terms, and tests of their means.
#pragma once

#include <span>
#include <vector>

namespace kvbench {

/// Bernstein: P(|X| >= deviation) <= 2 exp(-deviation^2 / (2 (variance + largest * deviation / 3))) for a sum X of independent
/// terms of mean 0 that are at most `largest` in absolute value, whose variances sum to `variance`. The same holds for |X|_2 of
/// a sum of vectors with E|X|^2 = variance (Pinelis, Ann. Probab. 22, 1994). Holds at any sample size.
double bernstein_tail(double deviation, double variance, double largest);
/// The deviation at which that bound is `probability`.
double bernstein_radius(double probability, double variance, double largest);

/// Two-sided p-value that the mean of independent, non-negative, right-skewed variables relative to its known expectation is
/// `ratio`, where the known relative variance of that mean is `cv2`. Above 1: Gamma of this mean and variance, exact for means
/// of squares of normal numbers. Below 1: normal, whose lower tail is the heavier one.
double mean_of_squares_test(double ratio, double cv2);

/// Cells 0 .. count-1 of about equal probability, each a run of neighbours: the cell of each element of `weights`.
std::vector<std::size_t> equal_runs(std::span<const double> weights, std::size_t count);

}  // namespace kvbench
