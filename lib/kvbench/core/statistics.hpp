// SPDX-License-Identifier: Apache-2.0
// Summaries and intervals. Everything is deterministic: fixed seeds, fixed order of summation.
// Probabilities and quantiles of distributions, by Boost.Math. NaN where an argument is NaN or outside its domain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvbench {

/// Quantile q in [0, 1] by linear interpolation between order statistics (type 7, numpy's default). `values` need not
/// be sorted and must not be empty or hold NaN.
double quantile(std::vector<double> values, double q);

double mean(std::span<const double> values);

/// Standard error of the mean of at least two independent values: their standard deviation divided by the square root
/// of their number.
double standard_error(std::span<const double> values);

struct Interval {
  double lo = 0, hi = 0;
};

/// 95 % interval of the mean of at least two independent, nearly normal values, by Student's t distribution.
Interval student_interval(std::span<const double> values);

/// 95 % interval of the mean of at least two independent, positive, nearly log-normal values, such as the damage of
/// documents: the modified method of Cox (Olsson, Journal of Statistics Education 13(1), 2005), with m and s^2 the mean
/// and variance of the logarithms of n values:
///     exp(m + s^2/2 -+ t sqrt(s^2/n + s^4/(2 (n-1)) + more^2)),     t: Student's bound with n - 1 degrees of freedom,
/// extended to hold their mean. `more`: standard error of the logarithm from another source; 0: none. Where a value is
/// 0, bootstrap_mean() of the values, which covers less. It holds a log-normal mean in 93 to 96 % of the cases at
/// standard deviations of 1 to 1.3 and 6 to 24 values, in 75 to 87 % where logarithms have the tails of Student's t
/// with 5 degrees of freedom (tests/unit/core/intervals.cpp).
Interval log_normal_interval(std::span<const double> values, double more = 0);

/// 95 % interval of a variance of which `mean` is the mean of `count` squares of independent normal values of mean 0.
Interval mean_square_interval(double mean, double count);

/// Percentile bootstrap interval of a mean over a grid of observations that are correlated within a row (a block of
/// neighbouring queries) and within a column (one seed). `sums` and `counts` are [rows][cols] row-major: the sum and
/// the number of the observations of each cell. Rows and columns are drawn with replacement, independently, `resamples`
/// times (Philox key 0); `tail` of them lie below the interval, and as many above it. NaN where fewer than two rows
/// have observations, because their variance is unknown, and where no resample has a positive count: compare takes
/// errors as counts, and files can hold negative ones.
Interval bootstrap_mean(std::span<const double> sums, std::span<const double> counts, std::size_t cols,
                        int resamples = 1000, double tail = 0.025);

/// Clopper-Pearson interval of a failure probability after `failures` of `trials`, two-sided level 1 - alpha.
Interval clopper_pearson(std::int64_t failures, std::int64_t trials, double alpha = 0.05);

/// Holm's step-down adjustment: adjusted p-values in the order given. `family`: number of hypotheses, for a subset that
/// was chosen by the data (comparisons with the best of a group: all pairs of the group); 0: the number given. Adjusted
/// p-values of such a subset are not smaller than within the whole family.
std::vector<double> holm(std::span<const double> p_values, std::size_t family = 0);

/// Counts of draws by cell, and their distribution under the hypothesis. The number of draws is given, not random.
struct Stratum {
  std::vector<double> counts;  ///< by cell
  std::vector<double> law;     ///< probabilities that sum to 1
};

/// p-value of Pearson's test that the draws of all strata follow their distributions; strata are independent of each
/// other. The statistic is referred to the Gamma law of its exact mean and variance, whose tail is the heavier one
/// where few draws are expected. Neighbouring cells are pooled until at least 10 draws are expected per bin, so order
/// cells such that neighbours are affected alike by a fault. 1 where no stratum has two bins, 0 where a cell of
/// probability 0 was drawn.
double stratified_chi_square(std::span<const Stratum> strata);

/// Least-squares slope of y over x.
double slope(std::span<const double> x, std::span<const double> y);

/// P(X <= count) for X ~ Binomial(trials, probability), 0 <= count.
double binomial_head(std::int64_t count, std::int64_t trials, double probability);

/// P(X >= failures) for X ~ Binomial(trials, probability): the p-value of "the failure probability is at most this".
double binomial_tail(std::int64_t failures, std::int64_t trials, double probability);

/// The x with P(X <= x) = p for X ~ Beta(a, b).
double beta_quantile(double p, double a, double b);

/// P(X >= x) for X ~ Gamma(shape, 1).
double gamma_tail(double x, double shape);

/// The x with P(X <= x) = p for X ~ Gamma(shape, 1).
double gamma_quantile(double p, double shape);

/// P(T >= t) of Student's t with `degrees` of freedom.
double student_tail(double t, double degrees);

/// The x with P(X <= x) = p of the standard normal distribution.
double normal_quantile(double p);

/// Two-sided p-value of Student's t.
double student_p(double t, double degrees);

/// The t with P(|T| <= t) = level.
double student_bound(double level, double degrees);

}  // namespace kvbench
