// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.3: MergeAndReduce with batches of t = O*(e^{2 a r^2} / eps) and T = log2(n/t)
// gives C^0 .. C^T whose sums, weighted by 2^i, satisfy with probability at least 1 - 1/poly(n)
//   |sum_{i <= j} e^{a<k_i,q>} v_i - z_j|_2 <= eps j e^{-a r^2} max|v|.
//
// The check is the converse: t and T are given, and the error is compared with what the proof states for them:
//   literal  30 sqrt(s) ln(s n / delta) T (j/t) e^{a r^2} max|v|, r the longest of keys and queries: the formula of the
//            proof with 30 for O, as in Theorem 3.2, and 1/poly(n) read as the delta of the run;
//   tight    halves: the bounds of all calls add, as in the proof, each with the constants of Theorem 3.2; pairs: both
//            halves are equally likely to be kept, so that variances add and the factor T disappears.
// With pairs, z_j is unbiased, which has a sharper test of its own. docs/theory/balancekv.thm33.md.
#pragma once

#include <kvbench/bounds/balancekv/tree.hpp>

namespace kvbench::bounds {

struct Theorem33Setup {
  Index t = 64, levels = 2;
  double delta = 0.1;
  Index seeds = 400;
};
void check_theorem33(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem33Setup& setup, const TreeSketch& sketch);

/// Adds the row of the literal bound at T = 1, t = n/2 and the smallest n where it is below the trivial one, with the
/// values of the head or with v = 1; or one row with n*.
void check_theorem33_literal(CheckContext& context, const Subject& subject, const Theorem33Setup& setup,
                             const TreeSketch& sketch);

Check balancekv_theorem33();

}  // namespace kvbench::bounds
