// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Theorem 1: with t = Omega(eps^-2 e^{2 delta r} log n), s = Omega(eps^-2 d) and |q| <= r,
//   |z/tau - Attn(q, K, V)| <= eps |softmax(Kq)|_2 |V|_op   (Eq. 3)
// with probability 0.99, in memory O(d (m t + s)) for (m, delta)-clusterable keys.
//
// Reading: "satisfies Eq. (1)" means Eq. (3); the overview's eps^-2 d log n samples are the theorem's Omega(eps^-2 d).
// The constants of Omega are not given: literal numbers take them as 1. Explicit constants:
// docs/theory/subgen.theorem1.md.
#pragma once

#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

/// t and s that the derivation grants eps and p with: half of p and a third of eps for each of tau and z.
struct TheoremSizes {
  double t = 1, s = 1;
};
TheoremSizes explicit_sizes(const SubgenSetup& setup, const SubgenValues& values, std::span<const SubgenQuery> queries,
                            double eps, double p);
/// The same with the constants of Omega taken as 1.
TheoremSizes literal_sizes(double delta_r, Index n, Index d, double eps);

/// Numbers kept, m'(d + td + 1) + s(d + dv + 1), over the n(d + dv) of the exact cache.
double memory_ratio(Index clusters, double t, double s, Index n, Index d, Index dv);

/// Adds the row that Eq. 3 holds for `eps` in every query, or where eps is NaN for the accuracy that the tiers grant at
/// the setup's t and s.
struct AttentionInputs {
  const SubgenSetup& setup;
  const SubgenValues& values;
  std::span<const SubgenQuery> queries;
};
void check_attention(CheckContext& context, std::string part, const AttentionInputs& inputs, double eps, Index seeds,
                     const Sketcher& sketcher);

Check subgen_theorem1();

}  // namespace kvbench::bounds
