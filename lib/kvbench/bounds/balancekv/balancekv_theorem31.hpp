// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1: Algorithm 1 with batches of t = O*(e^{2 a r^2} / eps) and T = log2(n/t) gives z_j
// with probability at least 1 - 1/poly(n), in memory O*(e^{2 a r^2} / eps), such that (Eq. 2)
//   |z_j - Attn(q_j, K_j, V_j)|_2 <= eps |softmax(K_j q_j)|_2 |V_j|_F.
//
// The check runs `balancekv` mode=stream of the registry, at given t and T, with half=exact and the tight constant. z = N'/D', and |D' - D| <= b_D < D, |N' - N| <= b_N give |z - Attn| <= (b_N + |Attn| b_D) / (D - b_D). Buckets of N
// have independent draws: their variances add. The denominator, and the step eps j e^{-a r^2} <= eps D of the proof, have rows of
// their own. docs/theory/balancekv.thm31.md.
#pragma once

#include <map>

#include <kvbench/bounds/balancekv/balance_tree.hpp>
#include <kvbench/bounds/balancekv/token_weights.hpp>

namespace kvbench {

struct Theorem31Setup {
  Index t = 64, levels = 2;
  double eps = 0.5, delta = 0.1;
  Index seeds = 400;
};

/// The implementation under test.
using StreamSketch = std::function<TokenWeights(std::uint32_t seed)>;
/// `balancekv` on the first `n` tokens; `delta` is the failure probability of each call of the walk.
StreamSketch library_stream(const Subject& subject, Index n, const Theorem31Setup& setup, double delta,
                            Backend& backend);

/// The numbers of keys and values that `balancekv` holds at t and T after the whole stream, in the memory that its paper counts.
double numbers_held(const Subject& subject, const Theorem31Setup& setup, double delta, Backend& backend);

double value_norm(const WalkSample& sample, Index i);
/// The buckets of N by their number, each with its tokens.
std::map<int, std::vector<Index>> norm_buckets(const WalkSample& sample);
/// The probability of FAIL of each call at which all calls together FAIL with probability delta / 2.
double delta_of_calls(const WalkSample& sample, const Theorem31Setup& setup);

void check_theorem31(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem31Setup& setup, const StreamSketch& sketch);

Claim balancekv_theorem31();

}  // namespace kvbench
