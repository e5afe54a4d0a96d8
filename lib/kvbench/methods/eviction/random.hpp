// SPDX-License-Identifier: Apache-2.0
// random: B of the n context tokens, drawn uniformly without replacement, weight 1. The lower reference of every plot:
// a selection that does not exceed it gains nothing from keys, values or queries.
//
// The B tokens are the first B of one random permutation of the context, so the sets of growing budgets are nested.
// Decoded tokens are kept exactly. It differs from `uniform` only in the weights: n/m there makes both sums unbiased, 1
// here treats the sample as the whole cache.
// Parameters: none.
// Complexity: O(n log n) once per seed to order the tokens, O(B d) per query. Memory: B (d + dv) numbers.
// Deviations: none (no paper defines it).
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo random_method();

}  // namespace kvbench::methods
