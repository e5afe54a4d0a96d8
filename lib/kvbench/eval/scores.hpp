// SPDX-License-Identifier: Apache-2.0
// Scores of single predictions: the logits of the compressed model against those of the full cache on the same tokens.
// All sums in fp64.
#pragma once

#include <span>
#include <vector>

namespace kvbench::eval {

/// One predicted token.
struct TokenScore {
  double kl = 0;                 ///< KL(full || compressed) of the distribution of the token, nats, at least 0
  double nll_full = 0, nll = 0;  ///< negative log-likelihood of the true token, nats
  bool same_top = false;         ///< both models have the same most probable token
  bool right_full = false, right = false;  ///< the most probable token is the true one
};

/// `full` and `compressed`: logits [vocabulary]; `token`: the true next token. Of equal largest logits the first one
/// counts as the most probable. Throws Error where a logit is NaN or +infinity, or the sizes differ; -infinity is
/// probability 0.
TokenScore score_token(std::span<const float> full, std::span<const float> compressed, int token);

/// One predicted token of the short-context pass.
struct ShortScore {
  double nll = 0;
  bool right = false;
};
ShortScore score_short(std::span<const float> logits, int token);

/// Rise of the negative log-likelihood without the distant context that makes a token a key token (LongPPL, arXiv
/// 2410.23771).
inline constexpr double key_token_rise = 2;
/// Whether the full cache predicts the token better than the short context by at least `key_token_rise`.
inline bool is_key_token(double nll_full, const ShortScore& without_distant) {
  return without_distant.nll - nll_full >= key_token_rise;
}

}  // namespace kvbench::eval
