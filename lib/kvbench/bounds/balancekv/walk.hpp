// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), lines 6 to 9 of Algorithm 2: token j is +1 with probability
//   p_j = 1/2 - <w_{j-1}, u_j> / (2 c R^2),   w_{j-1} = sum of sign_i u_i over i < j,   <u_i, u_j> = e^{a<k_i,k_j>}
//                                             <v_i, v_j>,
// clamped to [0, 1]; and the matrix of these products is positive semidefinite, so that such vectors u_i exist.
//
// Given the earlier signs, the sign of step j is +1 with probability p_j, which EventTest tests at any number of steps,
// for steps of similar p_j and with weights that find a wrong threshold. With the c of the paper every p_j is near 1/2,
// and a wrong threshold would not show; c = 1, and keys scaled to a max |k|^2 <= 1/2, make it visible.
// docs/theory/balancekv.walk.md.
#pragma once

#include <kvbench/bounds/balancekv/walks.hpp>

namespace kvbench::bounds {

/// The same tokens; keys are scaled down to a max |k|^2 = largest where they are longer.
WalkSample with_short_keys(WalkSample sample, double largest);

/// Tests of the law of single steps.
struct StepLaw {
  double classes = 1;             ///< p-value over ten classes of p
  double drift = 1;               ///< p-value of the coefficient of <w, u> / (c R^2)
  double drift_ratio = NAN;       ///< this coefficient over its prescribed value
  std::int64_t forced = 0;        ///< steps whose p is 0 or 1
  std::int64_t forced_wrong = 0;  ///< of these, steps with the other sign
  std::int64_t steps = 0;
  double mean_bias = 0;  ///< mean |p - 1/2|
};
StepLaw step_law(const WalkSample& sample, double c, Index seeds, const SignWalk& walk,
                 const std::function<void()>& poll);

/// The pivot of a symmetric matrix [n, n] that is negative beyond rounding, or 0 where there is none (LDL^T, largest
/// pivot first).
double negative_pivot(std::vector<double> matrix, Index n);

void check_walk(CheckContext& context, const WalkSample& sample, const SignWalk& walk);

Check balancekv_walk();

}  // namespace kvbench::bounds
