// SPDX-License-Identifier: Apache-2.0
// random: B of the n context tokens, drawn uniformly without replacement, weight 1. The floor of every plot: a selection that
// does not beat it has learned nothing from keys, values or queries.
//
// The B tokens are the first B of one random permutation of the context, so the sets of growing budgets are nested. Decoded
// tokens are kept exactly. It differs from `uniform` in the weights alone: n/m there makes both sums unbiased, 1 here treats
// the sample as if it were the cache.
// Parameters: none. Complexity: O(n log n) once a seed to order the tokens, O(B d) a query. Memory: B (d + dv) numbers.
// Deviations: none (no paper fixes it).
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

MethodInfo random_method();

}  // namespace kvbench
