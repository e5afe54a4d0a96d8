// SPDX-License-Identifier: Apache-2.0
// The uniform baselines of BalanceKV (arXiv 2502.07861, Fig. 2), recomputed: `uniform` is the sampling that the text
// describes, and `uniform-repo` the baseline of the released code, by the rules that the headers of the two methods
// state.
#pragma once

#include <cmath>
#include <functional>

#include <kvbench/faithful/oracle/comparison.hpp>

namespace kvbench::faithful {

/// The rules of `uniform` that a fault could touch.
struct UniformRules {
  enum class Sample {
    lowest_draws,      ///< the m tokens with the lowest draws: uniform without replacement
    first_tokens,      ///< the first m tokens
    with_replacement,  ///< m independent tokens; a token drawn twice counts twice
  };

  Sample sample = Sample::lowest_draws;
  /// Of a token in both sums, so that the sums are unbiased; 1 where all n tokens are kept.
  std::function<double(double n, double m)> weight = [](double n, double m) { return n / m; };
  std::function<double(double n, double m)> decoded_weight = [](double, double) {
    return 1.0;
  };  ///< decoded tokens are exact
  bool decoded_kept = true;
  bool seeded = true;  ///< the draws depend on the seed
};
OracleRun uniform_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                         const UniformRules& rules = {});

/// The rules of `uniform-repo` that a fault could touch.
struct UniformRepoRules {
  bool first_is_plus = true;         ///< the first token of each block has the sign +1
  bool minus_first = true;           ///< the sort places -1 before +1
  bool new_draws_each_round = true;  ///< draws are keyed by the round
  std::function<double(double rounds)> weight = [](double rounds) { return std::exp2(rounds); };
  bool window_exact = true;  ///< the most recent tokens have weight 1
};
struct UniformRepoSizes {
  Index block = 256;
  Index rounds = -1;  ///< -1: the smallest number that fits the budget
};
OracleRun uniform_repo_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                              const UniformRepoSizes& sizes, const UniformRepoRules& rules = {});

}  // namespace kvbench::faithful
