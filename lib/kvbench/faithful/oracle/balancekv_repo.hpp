// SPDX-License-Identifier: Apache-2.0
// The walk of the released code of BalanceKV (arXiv 2502.07861), recomputed over a stream in fp64. The listing of the
// paper does not describe it: the reference is the description of the released code in
// methods/sampling/balancekv_repo.cpp.
#pragma once

#include <optional>

#include <kvbench/faithful/oracle/comparison.hpp>

namespace kvbench::faithful {

struct RepoSetup {
  bool released_mass = true;  ///< mass=released: 2^T in the denominator; false: the weights of the numerator
  double temp = 1;            ///< factor of the exponent
  double gamma = 4;           ///< step of the walk
  double beta = 0;            ///< subtracted from the exponent
  Index block = 256;
  Index rounds = -1;  ///< T; -1: from the budget

  std::vector<methods::Assignment> settings() const;
  std::string text() const;  ///< for CheckRow::params
};

/// The rules of the released code that a fault could touch.
struct RepoRules {
  double offset = 0.025 + 1e-8;  ///< added to <v_i, v_j>
  bool padded_mean = true;       ///< the mean that is subtracted from the keys includes the zeros of the padding
  bool first_positive = true;    ///< the first token of a block gets +1
  bool weighted_values = true;   ///< values are multiplied by the weights so far
};

/// The snapshots of a stream. Not set where the budget is too small.
std::optional<OracleRun> balance_repo_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                             const RepoSetup& setup, const RepoRules& rules = {});

}  // namespace kvbench::faithful
