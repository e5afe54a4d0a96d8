// SPDX-License-Identifier: Apache-2.0
// exact: keeps everything. Its row shows what the other rows are compared with; with --standalone it is the noise floor, the same
// attention summed in another order.
//
// Parameters: none.
// Complexity: O(n d) a query. Memory: the full cache, n (d + dv) numbers.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

MethodInfo exact_method();

}  // namespace kvbench
