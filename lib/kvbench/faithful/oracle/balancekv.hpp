// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Algorithms 1 to 4, as a list of rules, and recomputed by them in fp64 from the draws of
// the method, over a stream. The default of every rule is what the paper states, at the place that its comment names; a
// planted fault is another value of one of them. docs/theory/balancekv.algorithms.md lists the readings of misprints.
// The draw of a token in round or level l of instance i has the number 64 i + l; instance 0 is that of the batch and of
// D, the others are those of N in the order in which they open.
// Beside it the walk of the released code, which the listing of the paper does not describe: the reference is the
// description of it in methods/sampling/balancekv_repo.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/trials/stream.hpp>
#include <kvbench/faithful/oracle/comparison.hpp>
#include <kvbench/kernels/view.hpp>
#include <kvbench/methods/contract/params.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {

/// The parameters of `balancekv` that a run sets.
struct BalanceSetup {
  std::string constant = "paper";  ///< paper, tight, greedy or a number
  double delta = 0;                ///< failure probability of a call; 0: 1 / the tokens of the call
  bool pairs = true;               ///< half=exact; false: half=smaller
  bool stream = false;             ///< Algorithms 1 and 3; false: the blocks of section 4
  Index rounds = -1;               ///< T; -1: from the budget
  Index block = 256;               ///< of section 4
  Index t = 0;                     ///< of Algorithm 3; 0: from the budget
  double eps = 0.1;                ///< of line 9 of Algorithm 1

  std::vector<methods::Assignment> settings() const;
  std::string text() const;  ///< for CheckRow::params
};

/// Algorithm 2, which is Algorithm 4 for vectors phi(k) x v.
struct WalkRules {
  double factor = 30;               ///< line 3: c = 30 ln(n / delta)
  bool natural_log = true;          ///< line 3; false: base 2
  bool threshold_has_c = true;      ///< lines 7, 8: c R^2; false: R^2
  double drift = -1;                ///< line 8: p = 1/2 + drift y^T eta / (2 c R^2)
  bool value_product = true;        ///< line 6: exp(a <k_i, k_j>) <v_i, v_j>; false: the first factor alone
  bool key_radius_squared = true;   ///< line 2: R = exp(a r_key^2 / 2) r_value; false: r_key in place of r_key^2
  double pair_radius2 = 4;          ///< section 4: (|u| + |u'|)^2 <= 4 R^2 for the difference of a pair
  double pair_radius2_of_ones = 2;  ///< and |u|^2 + |u'|^2 where v = 1, as <u, u'> > 0
  bool own_sum = true;       ///< line 4: eta starts at zero in every call; false: with the signs of the last call
  int flipped_step = -1;     ///< line 9: a step whose sign is the opposite one; -1: none
  bool keep_smaller = true;  ///< lines 12 to 16; false: the larger class
};

/// Section 4: T rounds of blocks over a context.
struct BatchRules {
  double weight = 2;          ///< section 2.2: of a token that a round keeps, relative to its weight before
  bool own_radii = true;      ///< line 2 of Algorithm 2: radii of each block; false: those of the first block for all
  bool new_draws = true;      ///< line 9 of Algorithm 2: independent draws in every round; false: those of the first
  bool keeps_decoded = true;  ///< section 4.2: all streamed embeddings are kept
};

/// i of line 4 of Algorithm 1 with 2^{i-1} < norm <= 2^i.
int bucket_of_norm(double norm);

/// Algorithms 1 and 3.
struct StreamRules {
  int (*bucket)(double norm) = bucket_of_norm;  ///< Algorithm 1, line 4
  bool cut_per_token = true;                    ///< Algorithm 1, line 9: eps / (2 n); false: eps / 2
  bool cut_by_key_norm = true;                  ///< Algorithm 1, line 9: exp(-a r^2); false: 1
  bool cut_by_largest_value = true;  ///< Algorithm 1, lines 6 to 9: v_max; false: the norm of the present value
  double value_radius = 1;           ///< Theorem 3.3: r_value of bucket i is 2^i times this
  bool own_denominator = true;       ///< Algorithm 1, line 14; false: D is the set that N keeps
  bool own_draws = true;             ///< of every instance; false: N and D share them
  bool merges_levels = true;         ///< Algorithm 3, lines 11 to 16; false: level 1 is never reduced
  bool doubles_weights = true;       ///< Algorithm 1, line 16: 2^l; false: l + 1
  bool clears_levels = true;         ///< Algorithm 3, line 13; false: the first token stays
  bool takes_decoded = true;         ///< Algorithm 1, line 3: until the stream ends
};

struct BalanceRules {
  WalkRules walk;
  BatchRules batch;
  StreamRules stream;
};

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

/// Rounds and window of a budget (section 4): the smallest T at which some window of recent tokens, which are kept
/// exactly, and at most half of the others per round fit; of these windows the shortest that uses most of the budget.
/// Absent: nothing fits.
struct PaperRounds {
  Index rounds = 0, recent = 0;
};
std::optional<PaperRounds> rounds_of_budget(Index tokens, Index budget, const BalanceSetup& setup);

/// t and T of a budget: setup.t and .rounds where they are given, else the largest even t with T = log2(n / t), rounded
/// up, whose sets N and D at the end of the context hold at most budget (d + dv) numbers. Absent: nothing fits.
struct PaperTreeSize {
  Index t = 2, levels = 0;
};
std::optional<PaperTreeSize> tree_of_budget(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                            const BalanceSetup& setup);

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
