// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861) recomputed over a stream in fp64, from the draws of the method: section 4 (batch) and
// Algorithms 1 and 3 (stream). The draw of a token in round or level l of instance i has the number 64 i + l; instance
// 0 is that of the batch and of D, the others are those of N in the order in which they open.
#pragma once

#include <optional>

#include <kvbench/faithful/oracle/balancekv_walk.hpp>
#include <kvbench/faithful/oracle/comparison.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {

/// Calls of the walk on the tokens of one stream, and whether fp32 could decide one of them the other way.
class BalanceCalls {
 public:
  BalanceCalls(const WalkVectors& vectors, const methods::Draws& draws, const BalanceSetup& setup,
               const BalanceRules& rules)
      : vectors_(vectors), ones_(vectors), draws_(draws), setup_(setup), rules_(rules) {
    ones_.dv = 0;
  }

  /// Signs of the tokens; `ones`: v = 1. `last` is read and replaced.
  std::vector<int> sign(const std::vector<Index>& tokens, const WalkRadii& radii, bool ones, std::uint32_t draw,
                        SignedTokens& last);
  const WalkVectors& vectors(bool ones) const { return ones ? ones_ : vectors_; }
  const BalanceRules& rules() const { return rules_; }

  bool close = false;
  Index fails = 0, steps = 0;

 private:
  WalkVectors vectors_, ones_;
  methods::Draws draws_;
  BalanceSetup setup_;
  BalanceRules rules_;
};

/// Algorithm 3: C^0 .. C^T.
class PaperTree {
 public:
  struct Shape {
    Index t = 2, levels = 0;  ///< T
    double value_radius = 0;  ///< 0: v = 1
    std::uint32_t first_draw = 0;
  };
  explicit PaperTree(const Shape& shape) : shape_(shape), levels_(static_cast<std::size_t>(shape.levels) + 1) {}

  void take(Index token, BalanceCalls& calls);
  const std::vector<std::vector<Index>>& levels() const { return levels_; }
  /// Line 16 of Algorithm 1: 2^level.
  static double weight(std::size_t level, const StreamRules& rules);

 private:
  void reduce(std::size_t level, BalanceCalls& calls);

  Shape shape_;
  std::vector<std::vector<Index>> levels_;
  Index taken_ = 0;
  SignedTokens last_;
};

/// The snapshots of a stream. Not set where the budget is too small.
std::optional<OracleRun> balance_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                        const BalanceSetup& setup, const BalanceRules& rules = {});

}  // namespace kvbench::faithful
