// SPDX-License-Identifier: Apache-2.0
// exact: keeps all tokens. Its row is the noise floor: the attention that answers every method, over all tokens, sums
// in another order than the exact pass, and its error is rounding alone.
//
// Parameters: none.
// Complexity: O(n d) per query. Memory: the full cache, n (d + dv) numbers.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo exact_method();

}  // namespace kvbench::methods
