// SPDX-License-Identifier: Apache-2.0
// SoftmaxBalance (BalanceKV, arXiv 2502.07861, Algorithm 2): the self-balancing walk with its threshold, and the choice
// of the half that is kept. Shared by the forms of `balancekv` and by `balancekv-repo`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::methods {

/// The constant c of the threshold c R^2.
struct WalkConstant {
  enum class Kind { paper, tight, greedy, number };
  Kind kind = Kind::paper;
  double value = 0;  ///< Kind::number

  /// c for a call on n tokens with failure probability delta: 30 ln(n / delta), or 1/2 + ln(2 n / delta).
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

/// Rows to be signed, with an independent walk per block.
struct WalkRows {
  Buffer<const float> keys;          ///< [n, d]
  Buffer<const float> values;        ///< [n, dv]; absent: v = 1
  std::vector<float> weights;        ///< [n] factors of the values; empty: 1
  std::vector<std::int32_t> starts;  ///< [blocks + 1] increasing from 0 to n
  std::vector<double> uniforms;      ///< [n]
  double value_radius = 0;           ///< r_val; 0: the largest norm of the values of each block
};
struct WalkSigns {
  std::vector<std::int32_t> signs;  ///< [n] +1 or -1
  Index fails = 0;                  ///< steps with |sum| > c R^2: the walk is clamped there and its bound is void
  Index steps = 0;
};
/// Runs the walks with R = exp(scale r_key^2 / 2) r_val, where r_key and r_val are the largest norms of each block.
/// With pairs R is that of the differences: |u - u'| <= 2 R, and <= sqrt(2) R for v = 1, where inner products are
/// positive.
WalkSigns softmax_balance(const WalkRows& rows, const WalkSettings& settings, Backend& backend);

/// The number of FAIL events and the number of steps; empty where there were no events.
std::vector<Note> walk_notes(Index fails, Index steps);

/// The shift subtracted from the exponents of a block, of which `largest` is the largest, so that in fp32 the largest
/// terms do not overflow and typical terms do not underflow.
double walk_shift(double largest);

/// 0, block, 2 block, ..., n.
std::vector<std::int32_t> block_starts(Index n, Index block);
/// The draw of each token.
std::vector<double> token_uniforms(const Draws& draws, const std::vector<TokenId>& tokens, std::uint32_t draw);

/// Indices of the tokens in the smaller sign class of each block; of equal classes the +1 class.
std::vector<std::int32_t> smaller_halves(const std::vector<std::int32_t>& signs,
                                         const std::vector<std::int32_t>& starts);

/// Indices of the tokens that a round of halving keeps, and the factors of their weights.
struct KeptPlaces {
  std::vector<std::int32_t> places;
  std::vector<float> factors;
};
/// The half that the released code keeps of all blocks together: floor(n / 2) indices with factor 2 or 1, factor 2
/// first. With m = floor(n / 2), let c be the later of the two indices at which a class reaches m members (0 for a
/// class that never does). The class of the sign at c is dropped up to and including c, the other class gets factor 2
/// up to c, and all tokens after c get factor 1; they are ordered stably by falling factor and cut to m. Weights sum to
/// at most n.
KeptPlaces released_half(const std::vector<std::int32_t>& signs);

/// The tokens of a context that are left after halving, and their weights.
struct WeightedTokens {
  std::vector<TokenId> ids;
  std::vector<float> weights;

  /// Adds the tokens first, ..., end - 1 with weight 1.
  void add_range(Index first, Index end);
  /// The tokens at the indices of `kept`.
  WeightedTokens at(const KeptPlaces& kept) const;
};

/// The use of a budget: the last `recent` tokens of the context are kept exactly, the tokens before them are halved
/// `rounds` times.
struct HalvingPlan {
  Index rounds = 0;
  Index recent = 0;
};
/// The smallest number of rounds that fits, then the shortest window that uses most of the rest of the budget. `left(m,
/// T)` is the upper bound of the tokens left of m after T rounds. rounds >= 0 prescribes the rounds. Throws Infeasible,
/// naming the method, where nothing fits.
HalvingPlan plan_halving(const std::string& method, Index tokens, Index budget, Index rounds,
                         Index (*left)(Index, Index));
/// For rounds that keep at most half: floor(m / 2^T).
Index left_of_halves(Index tokens, Index rounds);
/// For rounds of exact pairs, each of which keeps an odd last token.
Index left_of_pairs(Index tokens, Index rounds);

}  // namespace kvbench::methods
