// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1: Algorithm 1 with batches of t = O*(e^{2 a r^2} / eps) and T = log2(n/t)
// gives z_j with probability at least 1 - 1/poly(n), in memory O*(e^{2 a r^2} / eps), such that (Eq. 2)
//   |z_j - Attn(q_j, K_j, V_j)|_2 <= eps |softmax(K_j q_j)|_2 |V_j|_F.
//
// The check runs `balancekv` mode=stream of the registry, at given t and T, with half=exact and the tight constant. z =
// N'/D', and |D' - D| <= b_D < D, |N' - N| <= b_N give |z - Attn| <= (b_N + |Attn| b_D) / (D - b_D). Buckets of N have
// independent draws: their variances add. The denominator, and the step eps j e^{-a r^2} <= eps D of the proof, have
// rows of their own. docs/theory/balancekv.thm31.md.
#pragma once

#include <kvbench/bounds/balancekv/stream_sketch.hpp>

namespace kvbench::bounds {

void check_theorem31(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem31Setup& setup, const StreamSketch& sketch);

Check balancekv_theorem31();

}  // namespace kvbench::bounds
