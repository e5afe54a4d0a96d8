// SPDX-License-Identifier: Apache-2.0
// criticalkv(M): two stages. Half of the budget goes to the best scores of a method M, the rest to the largest products
// of score and size of what a token's value adds to the residual stream. CriticalKV, arXiv 2502.03805; code:
// NVIDIA/kvpress (CriticalKVPress).
//
// Of a budget of B tokens, the tokens that M always keeps come first. With them, the int(first B) best scores of M are
// kept; the others by (score + epsilon) |W_O v|, the norm averaged over the query group. Ties go to the lower token.
// Decoded tokens are kept exactly.
//
// Parameters:
//   first     share of the budget for the first stage, default 0.5 (kvpress: first_stage_ratio)
//   epsilon   in units of M's scores, default 1e-4 (kvpress). Those of snapkv are sums over its window of W queries, of
//             which kvpress takes the mean: its rule is epsilon = 1e-4 W
//   others    those of M, with one selection per kv head (per=kv_head)
// Complexity: O(G n dv s) per head for norms from a sketch of s columns, O(n log n) per budget. Memory: B (d + dv)
// numbers.
// Deviations: a trace holds no W_O, but its sketch (docs/damage.md), from which the Euclidean norm is estimated within
// 9 % per token at 64 columns; paper and kvpress take the sum of magnitudes.
#pragma once

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

struct CriticalkvParams {
  double first = 0.5;
  double epsilon = 1e-4;
};
void fields(ParamVisitor& visitor, CriticalkvParams& params);

Wrapper criticalkv_wrapper();

}  // namespace kvbench::methods
