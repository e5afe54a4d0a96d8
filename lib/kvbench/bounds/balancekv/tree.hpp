// SPDX-License-Identifier: Apache-2.0
// Merge-and-reduce (BalanceKV, arXiv 2502.07861, Algorithm 3) as the checks use it: the weights of the tokens after the
// last one, and bounds on the error of the weighted sum. docs/theory/balancekv.thm33.md derives the constants.
#pragma once

#include <kvbench/bounds/balancekv/walks.hpp>

namespace kvbench::bounds {

struct TreeSettings {
  Index t = 64;                ///< batch size
  Index levels = 2;            ///< T
  methods::WalkSettings walk;  ///< walk.delta is that of one call
  double value_radius = 1;     ///< r_val; not used where v = 1
};
struct TreeOutcome {
  std::vector<double> weights;  ///< [n] 2^level of the tokens that are kept, 0 of the others
  std::vector<Index> sizes;     ///< |C^0| .. |C^T|
  Index fails = 0, steps = 0;
};
/// The implementation under test.
using TreeSketch = std::function<TreeOutcome(const WalkSample&, const TreeSettings&, std::uint32_t seed)>;
/// MergeAndReduce, the implementation of the methods, on a backend.
TreeSketch library_tree(Backend& backend);

/// Number of calls that reduce level 0, 1, .. T-1 while `tokens` tokens arrive.
std::vector<Index> tree_calls(Index tokens, Index t, Index levels);
Index total_calls(Index tokens, Index t, Index levels);

/// Bounds on the length of the error of a tree, over |phi(q)| R, that hold with probability 1 - exp(-log_probability)
/// given that no call FAILs.
struct TreeBound {
  double tight = 0;  ///< for vectors of length R
  double data = 0;   ///< for the measured lengths at level 0, and the longest of them at the levels above
};
/// Half = exact: the walk is over differences of neighbours, both halves are equally likely to be kept, and variances
/// add.
TreeBound tree_bound_of_pairs(const WalkSample& sample, const TreeSettings& settings, double log_probability);
/// Half = smaller: which half is kept depends on the walk, so the bounds of all calls add, each with its share of the
/// probability.
TreeBound tree_bound_of_halves(const WalkSample& sample, const TreeSettings& settings, double log_probability);
/// sigma / R of a tree of pairs, for any lengths. The variances of trees with independent draws add.
double tree_spread_of_pairs(Index tokens, const TreeSettings& settings, bool with_values);

}  // namespace kvbench::bounds
