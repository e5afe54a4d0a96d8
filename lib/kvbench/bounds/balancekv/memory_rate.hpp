// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1: the error of the output falls like 1/memory, that of independent samples
// like 1/sqrt(memory). `balancekv` with one block of all tokens and `uniform` of the registry run at n/2 .. n/16
// tokens; the sizes are the numbers that each holds by its footprint, so that they are compared at equal bytes.
// docs/theory/balancekv.exponent.md.
#pragma once

#include <kvbench/bounds/balancekv/token_weights.hpp>
#include <kvbench/bounds/balancekv/walks.hpp>

namespace kvbench::bounds {

/// Weights of the tokens, and the numbers that the cache holds.
struct HeldWeights : TokenWeights {
  double numbers = 0;
};
/// The implementation under test.
using WeighTokens = std::function<HeldWeights(Index budget, std::uint32_t seed)>;

struct MemoryRate {
  std::string method;   ///< with its settings
  double expected = 0;  ///< slope
  Index seeds = 0;
  WeighTokens weigh;
};
/// Adds the slope of ln(error of the answer) over ln(numbers held) at n/2 .. n/16 tokens.
void check_memory_rate(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                       const MemoryRate& rate);

Check balancekv_memory_rate();

}  // namespace kvbench::bounds
