// SPDX-License-Identifier: Apache-2.0
// uniform: m of the n context tokens, drawn uniformly without replacement, each weighted n/m in numerator and
// denominator. The baseline of BalanceKV (arXiv 2502.07861, Fig. 2): sampling that ignores keys, values and queries.
//
// The m tokens are the first m of one random permutation of the context, so the sets of growing budgets are nested.
// Decoded tokens are kept exactly with weight 1. Deviation: the released script halves blocks instead; see
// `uniform-repo`. Parameters: none.
// Complexity: O(n log n) once to order the tokens, O(m d) per query. Memory: m (d + dv) numbers; the common weight n/m
// is one number.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo uniform_method();

}  // namespace kvbench::methods
