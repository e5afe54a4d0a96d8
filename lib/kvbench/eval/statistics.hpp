// SPDX-License-Identifier: Apache-2.0
// Tests of paired results, and rank correlation. The unit of independent observations is the document.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench::eval {

/// Two-sided mid-p value of McNemar's test: of `harmful + beneficial` discordant pairs each is as likely harmful as
/// beneficial. 1 without discordant pairs.
double mcnemar_mid_p(std::int64_t harmful, std::int64_t beneficial);

/// Equivalence tests (two one-sided tests, TOST): p-values of "the difference is at least `margin` in one of the
/// directions"; the two are called equal to within the margin where it is at most 5 %.

/// Of a mean over at least two independent values, by Student's t; NaN for fewer. Values that are all the same are
/// tested as a mean without error.
double tost_mean_p(std::span<const double> differences, double margin);
/// Of two proportions on the same items. The difference lies between -P(harmful flip) and P(beneficial flip), so both
/// are tested to be below the margin, by the exact binomial test. This is conservative and does not break down where no
/// flip is seen.
double tost_flips_p(std::int64_t harmful, std::int64_t beneficial, std::int64_t items, double margin);

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values);
/// Spearman's rank correlation with ties: Pearson's correlation of the ranks. NaN for fewer than three values or where
/// a side has only equal values.
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace kvbench::eval
