// SPDX-License-Identifier: Apache-2.0
// Algorithm 2 of BalanceKV (arXiv 2502.07861) as an obvious serial loop in fp64: one call on a list of tokens.
#pragma once

#include <span>
#include <vector>

#include <kvbench/faithful/oracle/balancekv_rules.hpp>
#include <kvbench/kernels/view.hpp>

namespace kvbench::faithful {

/// The vectors of all tokens; logits are scale <q, k>.
struct WalkVectors {
  Index d = 0, dv = 0;  ///< dv = 0: every value is 1
  double scale = 1;
  std::span<const float> keys;    ///< [n, d]
  std::span<const float> values;  ///< [n, dv]

  std::span<const float> key(Index i) const {
    return keys.subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d));
  }
  std::span<const float> value(Index i) const {
    return values.subspan(static_cast<std::size_t>(i * dv), static_cast<std::size_t>(dv));
  }
};

/// A sum of sign e^logit factor over tokens, and how far the same sum in fp32 may be from it. Both are relative to
/// e^top, so that long keys do not overflow.
class KernelSum {
 public:
  /// The roundings of logit and factor are in halves of a unit in the last place of 1.
  void add(int sign, double logit, double factor, double logit_rounding, double factor_rounding);
  double top() const;  ///< the largest logit; -infinity without terms
  struct Relative {
    double value = 0, rounding = 0;
  };
  Relative to(double top) const;

 private:
  struct Term {
    int sign;
    double logit, factor, logit_rounding, factor_rounding;
  };
  std::vector<Term> terms_;
};

/// The radii of line 1: a r_key^2, and r_value^2.
struct WalkRadii {
  double key2 = 0, value2 = 1;
};
WalkRadii radii_of(const WalkVectors& vectors, std::span<const Index> tokens);

struct SignedTokens {
  std::vector<Index> tokens;
  std::vector<int> signs;
};

struct WalkCall {
  std::vector<Index> tokens;     ///< in the order of their arrival
  std::vector<double> uniforms;  ///< of each token
  WalkRadii radii;
  const SignedTokens* last = nullptr;  ///< the call before this one, which only a fault reads
};

struct WalkOutcome {
  std::vector<int> signs;      ///< of each token
  bool close = false;          ///< whether fp32 could decide some step the other way
  Index fails = 0, steps = 0;  ///< steps with |y^T eta| > c R^2, of all
};
WalkOutcome walk_of_paper(const WalkVectors& vectors, const WalkCall& call, const BalanceSetup& setup,
                          const WalkRules& rules);

/// Places in the list of the class that lines 12 to 16 output: the smaller one, +1 where they are equal.
std::vector<std::size_t> kept_class(const std::vector<int>& signs, const WalkRules& rules);

/// c of line 3 for a call on n tokens; 0: greedy.
double constant_of_call(Index n, const BalanceSetup& setup, const WalkRules& rules);

}  // namespace kvbench::faithful
