// SPDX-License-Identifier: Apache-2.0
// Probabilities and quantiles of distributions, by Boost.Math. NaN where an argument is NaN or outside its domain.
#pragma once

#include <cstdint>

namespace kvbench {

/// P(X <= count) for X ~ Binomial(trials, probability), 0 <= count.
double binomial_head(std::int64_t count, std::int64_t trials, double probability);

/// P(X >= failures) for X ~ Binomial(trials, probability): the p-value of "the failure probability is at most this".
double binomial_tail(std::int64_t failures, std::int64_t trials, double probability);

/// The x with P(X <= x) = p for X ~ Beta(a, b).
double beta_quantile(double p, double a, double b);

/// P(X >= x) for X ~ Gamma(shape, 1).
double gamma_tail(double x, double shape);

/// P(T >= t) of Student's t with `degrees` of freedom.
double student_tail(double t, double degrees);

/// The x with P(X <= x) = p of the standard normal distribution.
double normal_quantile(double p);

/// Two-sided p-value of Student's t.
double student_p(double t, double degrees);

/// The t with P(|T| <= t) = level.
double student_bound(double level, double degrees);

}  // namespace kvbench
