// SPDX-License-Identifier: Apache-2.0
// Bounds on the tails of sums of independent terms, and tests of their means.
#pragma once

#include <span>
#include <vector>

namespace kvbench {

/// Bernstein's inequality: P(|X| >= deviation) <= 2 exp(-deviation^2 / (2 (variance + largest * deviation / 3))) for a sum X of independent
/// terms of mean 0 that are at most `largest` in absolute value, whose variances sum to `variance`. The same holds for |X|_2 of
/// a sum of vectors with E|X|^2 = variance (Pinelis, Ann. Probab. 22, 1994), at any sample size.
double bernstein_tail(double deviation, double variance, double largest);
/// The deviation at which this bound equals `probability`.
double bernstein_radius(double probability, double variance, double largest);

/// Two-sided p-value of the mean of independent, non-negative, right-skewed variables. `ratio` is that mean over its known
/// expectation, and `cv2` the known relative variance of the mean. Above 1 the mean is taken to follow the Gamma law of this mean
/// and variance, which is exact for squares of normal numbers; below 1 the normal law, whose lower tail is the heavier one.
/// `rounding`: how far the ratio may be off because the variables are rounded; it decides where they are constant (cv2 = 0).
double mean_of_squares_test(double ratio, double cv2, double rounding);

/// Bound on the probability that the sum of x_i with random signs is as far from 0 as the sum of x_i, on the same side: with T = sum /
/// sqrt(sum of squares), Hoeffding's inequality gives exp(-T^2 / 2). Values that are not finite are left out.
double random_sign_bound(std::span<const double> x);

/// Divides the elements into `count` runs of neighbours of about equal total weight: the run, 0 .. count-1, of each element.
std::vector<std::size_t> equal_runs(std::span<const double> weights, std::size_t count);

}  // namespace kvbench
