// SPDX-License-Identifier: Apache-2.0
// SoftmaxBalance (BalanceKV, arXiv 2502.07861, Algorithm 2): the self-balancing walk with its threshold, and which half of the
// signed tokens stays. Shared by the forms of `balancekv` and by `balancekv-repo`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// The constant c of the threshold c R^2.
struct WalkConstant {
  enum class Kind { paper, tight, greedy, number };
  Kind kind = Kind::paper;
  double value = 0;  ///< Kind::number

  /// For a call on n tokens that may fail with probability delta: 30 ln(n / delta), or 1/2 + ln(2 n / delta).
  double of(Index n, double delta) const;
};
/// "paper", "tight", "greedy" or a positive number. Throws Error naming the parameter for anything else.
WalkConstant parse_walk_constant(const std::string& parameter, const std::string& text);

struct WalkSettings {
  WalkConstant constant;
  double delta = 0;    ///< 0: 1 / n for a call on n tokens
  bool pairs = false;  ///< neighbours get opposite signs (kernel halving)
  float scale = 1;     ///< of the logits
};

/// Rows to be signed, each block by a walk of its own.
struct WalkRows {
  Buffer<const float> keys;          ///< [n, d]
  Buffer<const float> values;        ///< [n, dv]; absent: v = 1
  std::vector<float> weights;        ///< [n] factors of the values; empty: 1
  std::vector<std::int32_t> starts;  ///< [blocks + 1] increasing from 0 to n
  std::vector<double> uniforms;      ///< [n]
  double value_radius = 0;           ///< r_val, where it is known; 0: the longest value of each block
};
struct WalkSigns {
  std::vector<std::int32_t> signs;  ///< [n] +1 or -1
  Index fails = 0;                  ///< steps with |sum| > c R^2: the walk is clamped there and its bound is void
  Index steps = 0;
};
/// Walks with R = exp(scale r_key^2 / 2) r_val, r_key and r_val the longest of each block. With pairs R is that of the
/// differences: |u - u'| <= 2 R, and <= sqrt(2) R for v = 1, where inner products are positive.
WalkSigns softmax_balance(const WalkRows& rows, const WalkSettings& settings, Backend& backend);

/// The FAIL events of a row and the steps among which they fell; nothing where there were none.
std::vector<Note> walk_notes(Index fails, Index steps);

/// What is taken off the exponents of a block whose largest is `largest`, so that neither the largest terms overflow nor
/// ordinary ones vanish in fp32.
double walk_shift(double largest);

/// 0, block, 2 block, ..., n.
std::vector<std::int32_t> block_starts(Index n, Index block);
/// The draw of each token.
std::vector<double> token_uniforms(const Draws& draws, const std::vector<TokenId>& tokens, std::uint32_t draw);

/// Places of the sign class that is smaller in its block; of equal classes the +1 class.
std::vector<std::int32_t> smaller_halves(const std::vector<std::int32_t>& signs, const std::vector<std::int32_t>& starts);

/// Places that a round of halving keeps, and by what it multiplies their weights.
struct KeptPlaces {
  std::vector<std::int32_t> places;
  std::vector<float> factors;
};
/// The half that the released code keeps of all blocks together: floor(n / 2) places of factor 2 or 1, those of 2 first.
/// With m = floor(n / 2), let c be the later of the two places where a class reaches m members (0 for a class that never does).
/// The class of the sign at c is dropped up to and including c, the other counts twice up to c, all after c count once; stable
/// order of falling weight, cut to m. Weights sum to at most n.
KeptPlaces released_half(const std::vector<std::int32_t>& signs);

/// What halving has left of a context.
struct WeightedTokens {
  std::vector<TokenId> ids;
  std::vector<float> weights;

  /// Adds the tokens first, ..., end - 1 with weight 1.
  void add_range(Index first, Index end);
  /// The tokens at these places of the list.
  WeightedTokens at(const KeptPlaces& kept) const;
};

/// A budget as rounds of halving: the last `recent` tokens of the context are kept exactly, those before are halved `rounds`
/// times.
struct HalvingPlan {
  Index rounds = 0;
  Index recent = 0;
};
/// The smallest number of rounds that fits, then the shortest window that uses most of what is left. `left(m, T)` tokens stay
/// of m at most. rounds >= 0 prescribes them. Throws Infeasible, naming the method, where nothing fits.
HalvingPlan plan_halving(const std::string& method, Index tokens, Index budget, Index rounds, Index (*left)(Index, Index));
/// Rounds that keep at most half: floor(m / 2^T).
Index left_of_halves(Index tokens, Index rounds);
/// Rounds of exact pairs, each of which puts an odd last token aside.
Index left_of_pairs(Index tokens, Index rounds);

}  // namespace kvbench
