// SPDX-License-Identifier: Apache-2.0
// The best tokens and weights for queries that are known: what only hindsight can choose.
//
// With common weights w_j >= 0 of numerator and denominator, and weight 0 for tokens that are left out, the error of
// query row q is |R_q| / D_q, where R_q = sum_j (w_j - 1) a_qj (v_j - z*_q) and D_q = 1 + sum_j (w_j - 1) a_qj, over
// the tokens j of the context; a is exact attention over all visible tokens, and z* the exact output. Tokens outside
// the context answer with weight 1 and drop out of R. The fit minimises
//     sum_q s_q |R_q|^2 / |z*_q|^2 + (D_q - 1)^2,
// a non-negative least-squares problem in w. s_q is 1 in the first fit, and 1 / D_q^2 of its result in the second,
// which comes nearer to the error itself.
//
// Coordinate descent on the Gram matrix solves it: at most 300 sweeps, which end where a sweep lowers the objective by
// less than 1e-7 of its value without tokens. All of it is fp64 on the host, in an order that nothing but its input
// decides.
#pragma once

#include <span>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

/// Query rows over the tokens of a context.
class WeightFit {
 public:
  /// The largest number of pairs of a query row and a token, which take up to 24 bytes each, and of a kept token and a
  /// token, which take 8.
  static constexpr Index most_pairs = Index{1} << 24;
  /// Throws Infeasible where there are more of either.
  static void check_size(Index rows, Index tokens, Index kept);

  /// shares [R, n]: exact attention of each row to each token, 0 where it does not see it; values [n, dv];
  /// outputs [R, dv]: the exact outputs.
  WeightFit(Index dv, std::vector<float> shares, std::vector<float> values, std::span<const float> outputs);

  /// At most `count` tokens by greedy forward selection, ascending. Each step takes the token that lowers the
  /// objective most with its best weight, and then changes the weights of all once; tokens whose weight falls to 0
  /// make room for others. Ends early where no token lowers the objective.
  std::vector<Index> greedy(Index count) const;

  /// The weights of these tokens, by their order: of `start` and the two fits those with the smallest mean_error().
  std::vector<double> weights(std::span<const Index> tokens, std::span<const double> start) const;

  /// The mean over the rows of |answer - z*| / |z*| with these tokens and weights, and weight 0 for other tokens.
  /// Rows whose exact output is 0 are left out.
  double mean_error(std::span<const Index> tokens, std::span<const double> weights) const;

 private:
  friend class GramColumns;

  /// D of each row.
  std::vector<double> denominators(std::span<const Index> tokens, std::span<const double> weights) const;
  std::vector<double> fit(std::span<const Index> tokens, std::span<const double> start,
                          std::span<const double> row_scale) const;

  Index rows_, tokens_, dv_;
  std::vector<float> shares_, values_;
  std::vector<double> outputs_;  ///< [R, dv]
  std::vector<double> inverse_;  ///< [R] 1 / |z*|^2; 0 where z* is 0
  std::vector<double> mass_;     ///< [R] sum of the shares of the context
  std::vector<double> pull_;     ///< [R, dv] sum over the context of a (v - z*)
};

}  // namespace kvbench::methods
