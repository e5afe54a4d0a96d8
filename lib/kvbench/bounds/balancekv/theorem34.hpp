// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.4 (Theorem 1.1 of Alweiss, Liu, Sawhney, 2021) and Algorithm 4: for vectors
// u_1 .. u_n and any u, with probability at least 1 - delta,
//   |sum_{U'} <u_i, u> - sum_{U \ U'} <u_i, u>| <= O( log(n/delta) max|u_i| |u| ),   the walk with c = 30 ln(n/delta).
//
// Here u_i are the keys of a head and u its queries: the walk of Algorithm 2 on logits of zero, with these vectors as
// values. `literal` reads O(x) as 30 x. The number of steps enters the bound through ln n alone, so the bound is tested
// at two lengths. docs/theory/balancekv.thm34.md.
#pragma once

#include <kvbench/bounds/balancekv/walks.hpp>

namespace kvbench::bounds {

/// Vectors for a walk without feature map, which uses their own inner products.
struct PlainVectors {
  WalkSample sample;               ///< keys of zero, vectors as values
  std::vector<QueryRows> queries;  ///< rows <u_i, u>; ln |u| in place of ln |phi(q)|
};
PlainVectors plain_vectors(const std::vector<float>& vectors, const std::vector<float>& directions, Index d, Index n);

void check_theorem34(CheckContext& context, const PlainVectors& vectors, Index seeds, const SignWalk& walk);

/// Adds the row of the literal bound at the smallest n where it is below the trivial one, or one row with n*.
void check_theorem34_literal(CheckContext& context, Index tokens, const std::function<PlainVectors(Index)>& vectors_of,
                             const SignWalk& walk);
/// Adds the slopes of the discrepancy over n = 64 .. 4096 for the tight constant and for c = 1.
void check_theorem34_rate(CheckContext& context, Index tokens, const std::function<PlainVectors(Index)>& vectors_of,
                          const SignWalk& walk);

Check balancekv_theorem34();

}  // namespace kvbench::bounds
