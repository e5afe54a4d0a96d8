// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.2: for any q, with probability at least 1 - delta,
//   |sum_{C'} e^{a<k,q>} v - sum_{C \ C'} e^{a<k,q>} v|_2 <= O( sqrt(s) log(n s/delta) e^{a|q|^2/2} e^{a max|k|^2/2}
//   max|v| ),
// a = 1/sqrt(d), s the dimension of v, and |C'| <= n/2. Algorithm 2 is the walk.
//
// Readings. The logarithm is natural. The only constant in the text is the 30 of c = 30 ln(n/delta): `literal` reads
// O(x) as 30 x. FAIL events count as failures of the theorem: half of delta is for FAIL, half for the tail of the tight
// and data bounds. docs/theory/balancekv.thm32.md.
#pragma once

#include <kvbench/bounds/balancekv/walks.hpp>

namespace kvbench::bounds {

struct Theorem32Setup {
  Index tokens = 128;  ///< in the walk
  double delta = 0.1;
  Index seeds = 400;
  Index seeds_of_ratios = 100;  ///< for constants other than `tight`, whose rows only report ratios
};
/// Adds the rows of one sample: the discrepancy against the tight and the data bound, the fitted constant, rates of
/// FAIL, ratios to random signs, sizes of C'.
void check_theorem32(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem32Setup& setup, const SignWalk& walk);

/// Adds the row of the literal bound at the smallest number of tokens of the subject where it is below the trivial
/// bound, with the values of the head or with v = 1; or one row with the n* at which it would be.
void check_theorem32_literal(CheckContext& context, const Subject& subject, const Theorem32Setup& setup,
                             const SignWalk& walk);

Check balancekv_theorem32();

}  // namespace kvbench::bounds
