// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), observations 1 and 2 and Fig. 3: the cosine of keys l tokens apart, s(l), falls with l and is
// convex in it, within a region of 256 tokens. Theorem 6.1 assumes both, at every l.
//   chelsea.obs1  s falls: from octave to octave of l (the trend), and from each l to the next (what the theorem assumes)
//   chelsea.obs2  s is convex: chords between octaves flatten, and s(l) + s(l+2) >= 2 s(l+1) at each l
// One row a kv head and one of the mean over heads, which is what Fig. 3 shows. Blocks of 64 tokens are the independent units.
// docs/theory/chelsea.observations.md.
#pragma once

#include <vector>

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

/// Curves of blocks of tokens: [blocks][l - 1] mean cosine of the pairs (i, i + l) with i in the block.
using LagCurves = std::vector<std::vector<double>>;

/// fp64 on the host. Tokens that have all `lags` partners, cut into blocks of `block`; a longer context gives its first
/// `max_tokens`. Empty where that leaves no block.
LagCurves lag_curves(std::span<const float> keys, Index d, Index lags, Index block, Index max_tokens);

/// What of a shape holds over curves, given as weights on the lags: each row of weights must give a value >= 0.
struct ShapeTest {
  Index tested = 0;         ///< inequalities
  Index broken = 0;         ///< whose mean is below 0
  Index broken_surely = 0;  ///< whose 95 % band lies below 0
  double worst = 0;         ///< lowest mean, 0 where none is below
  double p_value = 1;       ///< of the data if all inequalities held: Bonferroni over them
};
/// A value of each block for each inequality: values[inequality][block].
ShapeTest test_shape(const std::vector<std::vector<double>>& values);

std::vector<std::vector<double>> falls_by_octave(const LagCurves&curves), falls_by_lag(const LagCurves&curves),
    convex_by_octave(const LagCurves&curves), convex_by_lag(const LagCurves&curves);

/// Share of the variance of a curve that its best decreasing fit explains (pool adjacent violators).
double decreasing_r2(const std::vector<double>& curve);
/// Largest distance of a curve from the largest convex function below it, as a share of its range.
double convex_gap(const std::vector<double>& curve);

Claim chelsea_observation1();
Claim chelsea_observation2();

}  // namespace kvbench
