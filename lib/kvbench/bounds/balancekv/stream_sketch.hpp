// SPDX-License-Identifier: Apache-2.0
// The method under test of Theorem 3.1: `balancekv` in mode=stream.
#pragma once

#include <map>
#include <vector>

#include <kvbench/bounds/balancekv/tree.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::bounds {

/// Weights of the tokens in numerator and denominator.
struct TokenWeights {
  std::vector<double> num, den;  ///< [n]
};
/// Those of the entries of a cache that hold one of its tokens, summed by token. Its entries must not depend on the
/// query.
TokenWeights token_weights(Session& session, Backend& backend);

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

/// The numbers of keys and values that `balancekv` holds at t and T after the whole stream, in the memory that its
/// paper counts.
double numbers_held(const Subject& subject, const Theorem31Setup& setup, double delta, Backend& backend);

double value_norm(const WalkSample& sample, Index i);
/// The buckets of N by their number, each with its tokens.
std::map<int, std::vector<Index>> norm_buckets(const WalkSample& sample);
/// The probability of FAIL of each call at which all calls together FAIL with probability delta / 2.
double delta_of_calls(const WalkSample& sample, const Theorem31Setup& setup);

}  // namespace kvbench::bounds
