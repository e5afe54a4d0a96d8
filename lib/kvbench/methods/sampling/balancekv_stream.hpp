// SPDX-License-Identifier: Apache-2.0
// balancekv mode=stream: BalanceKV, arXiv 2502.07861, Algorithm 1. Readings and parameters: balancekv.hpp.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/methods/sampling/balancekv.hpp>

namespace kvbench {

MakeCache prepare_balancekv_stream(const HeadPrompt& head, const BalancekvParams& params, Backend& backend);

/// i with 2^{i-1} < norm <= 2^i; norm > 0.
int norm_bucket(double norm);

/// Batch size and levels of all instances.
struct StreamPlan {
  Index t = 2;
  Index levels = 0;  ///< T
};
/// The sizes of the buckets of N that the plan must hold, and the tokens of D.
struct StreamSizes {
  Index tokens = 0;
  std::vector<Index> buckets;
  bool seen = true;  ///< they are the context's; false: those of a stream to come, which must fit all the time
};
/// The largest even t (or params.t) with T = log2(tokens / t), rounded up, (or params.rounds) that fits `budget` tokens of d +
/// dv numbers. Throws Infeasible where none does.
StreamPlan plan_stream(const StreamSizes& sizes, const BalancekvParams& params, Index budget, Index d, Index dv);

}  // namespace kvbench
