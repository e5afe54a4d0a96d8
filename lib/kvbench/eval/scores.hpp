// SPDX-License-Identifier: Apache-2.0
// Scores of single predictions: the logits of the compressed model against those of the full cache on the same tokens.
// All sums in fp64.
// Tests of paired results, and rank correlation. The unit of independent observations is the document.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvbench::eval {

/// One predicted token.
struct TokenScore {
  double kl = 0;                 ///< KL(full || compressed) of the distribution of the token, nats, at least 0
  double tv = 0;                 ///< total variation, half the sum of |p_full - p_compressed|, from 0 to 1
  double nll_full = 0, nll = 0;  ///< negative log-likelihood of the true token, nats
  bool same_top = false;         ///< both models have the same most probable token
  bool sure = false;             ///< the full cache gives its most probable token at least sure_probability
  bool right_full = false, right = false;  ///< the most probable token is the true one
};

/// Where the full cache predicts a token with this probability, a user does not expect another one.
inline constexpr double sure_probability = 0.9;

/// `full` and `compressed`: logits [vocabulary]; `token`: the true next token. Of equal largest logits the first one
/// counts as the most probable. Throws Error where a logit is NaN or +infinity, or the sizes differ; -infinity is
/// probability 0.
TokenScore score_token(std::span<const float> full, std::span<const float> compressed, int token);

/// The token with the largest logit; of equal ones that with the lowest id. Throws as score_token().
int most_probable(std::span<const float> logits);

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

/// Two-sided mid-p value of McNemar's test: of `harmful + beneficial` discordant pairs each is as likely harmful as
/// beneficial. 1 without discordant pairs.
double mcnemar_mid_p(std::int64_t harmful, std::int64_t beneficial);

/// Equivalence tests (two one-sided tests, TOST): p-values of "the difference is at least `margin` in one of the
/// directions"; the two are called equal to within the margin where it is at most 5 %.

/// Of a mean over at least two independent values, by Student's t; NaN for fewer. Values that are all the same are
/// tested as a mean without error.
double tost_mean_p(std::span<const double> differences, double margin);
/// Of two proportions on the same items. The difference lies between -P(harmful flip) and P(beneficial flip), so both
/// are tested to be below the margin, by the exact binomial test. This is conservative and does not break down where no
/// flip is seen.
double tost_flips_p(std::int64_t harmful, std::int64_t beneficial, std::int64_t items, double margin);

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values);
/// Spearman's rank correlation with ties: Pearson's correlation of the ranks. NaN for fewer than three values or where
/// a side has only equal values.
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace kvbench::eval
