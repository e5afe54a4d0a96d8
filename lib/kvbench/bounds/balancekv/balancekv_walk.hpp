// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), lines 6 to 9 of Algorithm 2: token j is +1 with probability
//   p_j = 1/2 - <w_{j-1}, u_j> / (2 c R^2),   w_{j-1} = sum of sign_i u_i over i < j,   <u_i, u_j> = e^{a<k_i,k_j>} <v_i, v_j>,
// clamped to [0, 1], and the matrix of these products is positive semidefinite, which makes the u_i vectors at all.
//
// Given the signs before, the sign of step j is a coin with probability p_j, so sign differences from p_j are martingale
// differences with variance p_j (1 - p_j): their sums over steps of like p_j are compared with chi-square. At the paper's c
// every p_j is near 1/2 and a wrong threshold could not be seen; c = 1 and keys scaled to a max |k|^2 <= 1/2 make it visible.
// docs/theory/balancekv.walk.md.
#pragma once

#include <kvbench/bounds/balancekv/balance_walks.hpp>

namespace kvbench {

/// The same tokens with keys shrunk, where they are longer, until a max |k|^2 = largest.
WalkSample with_short_keys(WalkSample sample, double largest);

/// p-values of the law of single steps.
struct StepLaw {
  double chi_square = 1;          ///< over ten classes of p
  double drift = 1;               ///< of the coefficient of <w, u> / (c R^2): the most powerful against a wrong threshold
  double drift_ratio = NAN;       ///< that coefficient over the one it should have
  std::int64_t certain = 0;       ///< steps whose p is 0 or 1
  std::int64_t contradicted = 0;  ///< among them, with the other sign
  std::int64_t steps = 0;
  double mean_lean = 0;  ///< mean |p - 1/2|
};
StepLaw step_law(const WalkSample& sample, double c, Index seeds, const SignWalk& walk, const std::function<void()>& poll);

/// Smallest pivot that is negative beyond rounding, else 0, of a symmetric matrix [n, n] (LDL^T with the largest pivot first).
double negative_pivot(std::vector<double> matrix, Index n);

void check_walk(CheckContext& context, const WalkSample& sample, const SignWalk& walk);

Claim balancekv_walk();

}  // namespace kvbench
