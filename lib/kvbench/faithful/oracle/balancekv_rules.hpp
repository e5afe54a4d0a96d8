// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Algorithms 1 to 4, as a list of rules. The default of every rule is what the paper
// states, at the place that its comment names; a planted fault is another value of one of them.
// docs/theory/balancekv.algorithms.md lists the readings of misprints.
#pragma once

#include <string>
#include <vector>

#include <kvbench/methods/contract/params.hpp>

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

}  // namespace kvbench::faithful
