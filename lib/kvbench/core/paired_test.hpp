// SPDX-License-Identifier: Apache-2.0
// Is one treatment better than another on the same observations? Observations depend on each other within a block of
// neighbouring queries and, where a treatment draws, within a seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench {

inline constexpr std::int64_t queries_a_block = 16;  ///< neighbouring queries are correlated

/// Pairs of observations on the grid that they depend on each other in: [blocks][seeds] row-major sums of both sides and the
/// number of pairs behind each.
struct PairedSums {
  std::size_t seeds = 1;
  bool drawn = false;  ///< a side is randomised, so that another seed would have given other values
  std::vector<double> a, b, counts;
  /// [units][seeds] sums of a - b and numbers of pairs by units of observations that draw for themselves, such as heads: what
  /// a seed does to one says nothing about the next. Empty: a seed's draws are the same for all.
  std::vector<double> unit_sums, unit_counts;
};

struct PairedTest {
  double mean_a = 0, mean_b = 0;
  double difference = 0;   ///< mean of a - b over the pairs
  Interval interval;       ///< 95 %, bootstrap over blocks and, independently, over seeds
  double p_value = 1;      ///< two-sided, of "the mean difference is 0"; NaN where it cannot be known (one_seed)
  double p_least = 1;      ///< the smallest p-value that this number of blocks can give
  std::size_t blocks = 0;  ///< with at least one pair
  bool one_seed = false;   ///< a randomised side with one seed: nothing shows how much its draws vary
  bool infinite = false;   ///< a side has an infinite value: p_value is 1, because such means do not compare
};

/// Tests the mean difference; `sums` must hold at least one pair. Without draws p_value is that of sign flips over blocks; with
/// draws it is the larger of that and of the t test with the variance over blocks and seeds. Flips see any law of the
/// differences but take all seeds as one; the t test sees how seeds vary but takes means for nearly normal.
PairedTest paired_test(const PairedSums& sums, int flips = 9999, int resamples = 1000);

/// Share of the 2^n choices of signs for which |sum of +-x| is at least |sum of x|: the two-sided p-value of "each x is as
/// likely as -x". All choices up to 16 values, else `flips` of them, drawn with a fixed key, and the observed one.
double sign_flip_p(std::span<const double> values, int flips = 9999);

/// Two-sided p-value of "the mean difference is 0" where values depend on each other within blocks, and within the seeds of a
/// unit; at least two blocks with pairs, and two seeds. Variance of the mean: V = V_blocks + V_seeds - V_cells, at least
/// V_blocks and V_seeds (Cameron, Gelbach, Miller, "Robust inference with multiway clustering", JBES 2011), where V_seeds is
/// the sum over units of what seeds differ by within the unit; Satterthwaite's degrees of freedom.
double two_way_t_p(const PairedSums& sums);

}  // namespace kvbench
