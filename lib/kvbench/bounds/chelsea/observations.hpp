// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), observations 1 and 2 and Fig. 3: the cosine of keys l tokens apart, s(l), falls with l
// and is convex in it, within a region of 256 tokens. Theorem 6.1 assumes both, at every l.
//   chelsea.obs1  s falls: from octave to octave of l (the trend), and from each l to the next (what the theorem
//                 assumes)
//   chelsea.obs2  s is convex: slopes between octaves increase, and s(l) + s(l+2) >= 2 s(l+1) at each l
// The claim is about the mean over heads, as in Fig. 3, and tested over layers and texts; rows of kind data show single
// heads, over blocks of 64 tokens. docs/theory/chelsea.observations.md.
#pragma once

#include <functional>
#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

/// Curves of blocks of tokens: [blocks][l - 1] mean cosine of the pairs (i, i + l) with i in the block.
using LagCurves = std::vector<std::vector<double>>;

/// Computed in fp64 on the host, from the first `max_tokens` tokens. Blocks of `block` tokens that have partners at all
/// `lags`; empty where there is no such block.
LagCurves lag_curves(std::span<const float> keys, Index d, Index lags, Index block, Index max_tokens);

/// The result of testing inequalities, each of which must have a mean >= 0 over the blocks.
struct ShapeTest {
  Index tested = 0;         ///< inequalities
  Index broken = 0;         ///< inequalities whose mean is below 0
  Index broken_surely = 0;  ///< inequalities whose 95 % interval lies below 0
  double worst = 0;         ///< smallest mean, or 0 where none is negative
  double p_against = 1;     ///< p-value of the data if all inequalities held, by Bonferroni
  double p_for = 0;         ///< p-value of the data if one of them did not
  double broken_share() const { return static_cast<double>(broken_surely) / static_cast<double>(tested); }
};
/// One inequality: the mean of its terms over units, with its interval, and the one-sided p-value of the sign that the
/// mean has.
struct TermTest {
  double mean = 0;
  Interval interval;  ///< 95 %
  double p = 1;
};
/// Over blocks of tokens, whose terms have either sign with equal probability if the mean is 0.
TermTest over_blocks(std::span<const double> terms);

/// values[inequality][unit].
ShapeTest test_shape(const std::vector<std::vector<double>>& values,
                     const std::function<TermTest(std::span<const double>)>& test_of);

/// The differences that must not be negative where curves decrease or are convex, from octave to octave and from lag to
/// lag.
std::vector<std::vector<double>> falls_by_octave(const LagCurves& curves);
std::vector<std::vector<double>> falls_by_lag(const LagCurves& curves);
std::vector<std::vector<double>> convex_by_octave(const LagCurves& curves);
std::vector<std::vector<double>> convex_by_lag(const LagCurves& curves);

/// Share of the variance of a curve that its best decreasing fit explains (pool adjacent violators).
double decreasing_r2(const std::vector<double>& curve);
/// Largest distance of a curve from the largest convex function below it, as a share of its range.
double convex_gap(const std::vector<double>& curve);

Check chelsea_observation1();
Check chelsea_observation2();

}  // namespace kvbench::bounds
