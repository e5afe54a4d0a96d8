// SPDX-License-Identifier: Apache-2.0
// exact: keeps everything. Its row is the noise floor: how far the same attention, summed in another order, is from the exact
// pass.
//
// Parameters: accumulate = f32 (default) | f64, the precision of the sums.
// Complexity: O(n d) a query. Memory: the full cache, n (d + dv) numbers.
#pragma once

#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

struct ExactParams {
  enum class Accumulate { f32, f64 };
  Accumulate accumulate = Accumulate::f32;
};
void fields(ParamVisitor& visitor, ExactParams& params);

MethodInfo exact_method();

}  // namespace kvbench
