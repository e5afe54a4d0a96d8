// SPDX-License-Identifier: Apache-2.0
// balancekv mode=stream: BalanceKV, arXiv 2502.07861, Algorithm 1. Readings and parameters: balancekv.hpp.
#pragma once

#include <vector>

#include <kvbench/methods/sampling/balancekv.hpp>

namespace kvbench::methods {

MakeCache prepare_balancekv_stream(const HeadPrompt& head, const BalancekvParams& params, Backend& backend);

/// i with 2^{i-1} < norm <= 2^i; norm > 0.
int norm_bucket(double norm);

/// Batch size and levels of all instances.
struct TreePlan {
  Index t = 2;
  Index levels = 0;  ///< T
};
/// The number of tokens in each bucket of N, and the number of tokens of D, that the plan must hold.
struct StreamSizes {
  Index tokens = 0;
  std::vector<Index> buckets;
  /// the sizes are those of the context; false: those of a future stream, which must fit at every time
  bool seen = true;
};
/// The largest even t (or params.t) with T = log2(tokens / t), rounded up, (or params.rounds) that fits `budget` tokens
/// of d + dv numbers. Throws Infeasible where none does.
TreePlan plan_stream(const StreamSizes& sizes, const BalancekvParams& params, Index budget, Index d, Index dv);

}  // namespace kvbench::methods
