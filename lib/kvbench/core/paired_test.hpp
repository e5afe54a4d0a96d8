// SPDX-License-Identifier: Apache-2.0
// Tests whether one treatment is better than another on the same observations. Observations are correlated within a
// block of neighbouring queries and, where a treatment is randomised, within a seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench {

inline constexpr std::int64_t queries_per_block = 16;  ///< neighbouring queries are correlated

/// Pairs of observations on the grid of their correlations: [blocks][seeds] row-major sums of both sides and the number
/// of pairs in each.
struct PairedSums {
  std::size_t seeds = 1;
  bool drawn = false;  ///< a side is randomised, so that its values depend on the seed
  std::vector<double> a, b, counts;
  /// [units][seeds] sums of a - b and numbers of pairs, by units of observations with independent draws, such as heads:
  /// the effect of a seed on one unit is independent of its effect on others. Empty: the draws of a seed are the same
  /// for all.
  std::vector<double> unit_sums, unit_counts;
};

struct PairedTest {
  double mean_a = 0, mean_b = 0;
  double difference = 0;  ///< mean of a - b over the pairs
  Interval interval{
      NAN,
      NAN};  ///< 95 %, bootstrap over blocks and, independently, over seeds; NaN without resamples or with one block
  double p_value = 1;      ///< two-sided, of "the mean difference is 0"; NaN where it cannot be computed (one_seed)
  double p_least = 1;      ///< the smallest p-value that this number of blocks can give
  std::size_t blocks = 0;  ///< with at least one pair
  bool one_seed = false;   ///< a randomised side with one seed: the variance of its draws is unknown
  bool infinite = false;   ///< a side has an infinite value: p_value is 1, because such means cannot be compared
};

/// Tests the mean difference; `sums` must hold at least one pair. Without draws, p_value is that of sign flips over
/// blocks; with draws it is the larger of that and the p-value of the t test with the variance over blocks and seeds.
/// Sign flips are valid for any symmetric distribution of the differences but treat all seeds as one; the t test
/// includes the variance over seeds but assumes nearly normal means.
PairedTest paired_test(const PairedSums& sums, int flips = 9999, int resamples = 1000);

/// The intervals of the mean difference, and of the ratio of the means, at a level; NaN as those of bootstrap_mean().
/// The closer the level is to 1, the more resamples are drawn, up to 4000.
Interval difference_interval(const PairedSums& sums, double level);
Interval ratio_interval(const PairedSums& sums, double level);

/// Share of the 2^n choices of signs for which |sum of +-x| is at least |sum of x|: the two-sided p-value of "each x is
/// as likely as -x". All choices for up to 16 values, otherwise `flips` of them, drawn with a fixed key, and the
/// observed one.
double sign_flip_p(std::span<const double> values, int flips = 9999);
/// The smallest p-value that it can give for this number of values.
double sign_flip_least(std::size_t values, int flips = 9999);
/// The fewest values for which sign flips can be significant after Holm's adjustment over `family` tests.
std::size_t sign_flip_units(std::size_t family);

/// Independent units for a power of 80 % of a two-sided test at 5 %, if the true effect were the estimate from `units`
/// units with this standard error. NaN where the effect is 0 or a figure is not finite.
double units_for_power(std::size_t units, double effect, double standard_error);

/// Two-sided p-value of "the mean difference is 0" where values are correlated within blocks and within the seeds of a
/// unit; requires at least two blocks with pairs, and two seeds. Variance of the mean: V = V_blocks + V_seeds -
/// V_cells, at least V_blocks and V_seeds (Cameron, Gelbach, Miller, "Robust inference with multiway clustering", JBES
/// 2011), where V_seeds is the sum over units of the variance between seeds within the unit; Satterthwaite's degrees of
/// freedom.
double two_way_t_p(const PairedSums& sums);

}  // namespace kvbench
