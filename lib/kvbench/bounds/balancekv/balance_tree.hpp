// SPDX-License-Identifier: Apache-2.0
// Merge-and-reduce (BalanceKV, arXiv 2502.07861, Algorithm 3) as checks see it: weights of the tokens after the last one, and
// how far the weighted sum can be from the whole one. docs/theory/balancekv.thm33.md derives the constants.
#pragma once

#include <kvbench/bounds/balancekv/balance_walks.hpp>

namespace kvbench {

struct TreeSettings {
  Index t = 64;             ///< batch size
  Index levels = 2;         ///< T
  WalkSettings walk;        ///< walk.delta: of one call
  double value_radius = 1;  ///< r_val; not read where v = 1
};
struct TreeOutcome {
  std::vector<double> weights;  ///< [n] 2^level of the tokens held, else 0
  std::vector<Index> sizes;     ///< of C^0 .. C^T
  Index fails = 0, steps = 0;
};
/// The thing under test.
using TreeSketch = std::function<TreeOutcome(const WalkSample&, const TreeSettings&, std::uint32_t seed)>;
/// MergeAndReduce on a backend.
TreeSketch library_tree(Backend& backend);

/// Calls that reduce level 0, 1, .. T-1 on the way to `tokens`.
std::vector<Index> tree_calls(Index tokens, Index t, Index levels);
Index total_calls(Index tokens, Index t, Index levels);

/// Length that the error of a tree stays below with probability 1 - exp(-log_probability), over |phi(q)| R, given that no call
/// FAILs.
struct TreeBound {
  double tight = 0;  ///< lengths of vectors at most R
  double data = 0;   ///< lengths as they are at level 0, and the longest of them above
};
/// Half = exact: the walk goes over differences of neighbours, its side is fair, variances add.
TreeBound tree_bound_of_pairs(const WalkSample& sample, const TreeSettings& settings, double log_probability);
/// Half = smaller: the side depends on the walk, so the lengths of all calls add, each with its share of the probability.
TreeBound tree_bound_of_halves(const WalkSample& sample, const TreeSettings& settings, double log_probability);
/// sigma / R of a tree of pairs whatever the lengths: variances of trees that are drawn apart add.
double tree_spread_of_pairs(Index tokens, const TreeSettings& settings, bool with_values);

}  // namespace kvbench
