// SPDX-License-Identifier: Apache-2.0
// exact: keeps all tokens. Its row is the reference of the other rows; with --standalone it is the noise floor, the same
// attention summed in a different order.
//
// Parameters: none.
// Complexity: O(n d) per query. Memory: the full cache, n (d + dv) numbers.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

MethodInfo exact_method();

}  // namespace kvbench
