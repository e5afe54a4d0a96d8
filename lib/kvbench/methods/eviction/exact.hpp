// SPDX-License-Identifier: Apache-2.0
// exact: keeps all tokens. Its row is the noise floor: how far the exact pass, with which every answer is compared, is
// from exact attention. For 16 evenly spaced queries of each query head the harness computes exact attention again, in
// fp64 on the host, without a kernel, with the scale and the window of the trace; the metrics of the row compare the
// two. They are rounding alone, unless the exact pass is wrong. All other queries have outputs and no metrics.
//
// Parameters: none.
// Complexity: O(n d) per query. Memory: the full cache, n (d + dv) numbers.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo exact_method();

}  // namespace kvbench::methods
