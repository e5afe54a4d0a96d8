// SPDX-License-Identifier: Apache-2.0
// The scope of competition: tokens compete for a budget within their head, within their layer, or over all layers of
// the model. Within a layer the kv heads share a budget of B tokens per head, and each keeps as many as its scores
// earn.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

/// The tokens of several heads, or of several layers, in one ranking by score.
class Competition {
 public:
  /// `scores` by competitor: those of its tokens, without NaN.
  explicit Competition(const std::vector<std::vector<float>>& scores);

  std::size_t competitors() const { return places_.size(); }

  /// How many tokens each competitor has among the best `count` of all, ties to the lower competitor and then to the
  /// lower token, where the best `safe` tokens of each are among them in any case. The sum is `count`, which is at
  /// least that of the safe tokens, and at most the number of all tokens.
  std::vector<Index> won(Index count, Index safe = 0) const;

  /// The place in the ranking of a competitor's best token after its first `k`; the number of all tokens after the
  /// last.
  Index place(std::size_t competitor, Index k) const;

 private:
  Index total_ = 0;
  std::vector<std::vector<std::uint32_t>> places_;  ///< by competitor: the places of its tokens, rising
};

/// `parts`, whose sum is whole, as whole numbers of the same sum: rounded down, and one more for each of those with the
/// largest fractions, ties to the one whose next token comes first in the ranking. A part of 1 is `unit` tokens.
std::vector<Index> rounded_shares(const std::vector<double>& parts, const Competition& ranking, Index unit = 1);

/// Throws Unavailable, "`does` all 3 `of_layer`, and has 2 of them; ...", where the heads are not all of their layer.
void require_all_heads(std::span<const HeadPrompt> heads, const std::string& does,
                       const char* of_layer = "kv heads of a layer");

/// How many tokens each head keeps beside the protected ones: `each` on average.
using ShareOut = std::function<std::vector<Index>(const Competition& heads, Index each, Index protected_tokens)>;

/// The caches of the kv heads of a layer, which share H times the budget; what the scores of a head protect comes
/// first. Decoded tokens are kept exactly. Throws Unavailable, naming `method`, where these are not all kv heads of the
/// layer.
MakeCaches compete(const std::string& method, std::span<const HeadPrompt> heads, std::vector<TokenScores> scores,
                   ShareOut share_out, Backend& backend);

}  // namespace kvbench::methods
