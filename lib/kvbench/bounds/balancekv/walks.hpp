// SPDX-License-Identifier: Apache-2.0
// What the checks of BalanceKV (arXiv 2502.07861) share: tokens as vectors u_i = phi(k_i) x v_i of a Hilbert space,
// walks over them, and bounds on the length of a signed sum. docs/theory/balancekv.thm32.md derives the constants.
//
// With a the scale of the logits, <u_i, u_j> = exp(a <k_i, k_j>) <v_i, v_j> and |u_i| <= R = exp(a max |k|^2 / 2) max
// |v|.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/query_trials.hpp>
#include <kvbench/bounds/trials/rates.hpp>
#include <kvbench/methods/sampling/softmax_balance.hpp>

namespace kvbench::bounds {

/// The tokens to which a walk assigns signs.
struct WalkSample {
  Index n = 0, d = 0, dv = 0;  ///< dv = 0: every value is 1
  float scale = 1;
  std::vector<float> keys;    ///< [n, d]
  std::vector<float> values;  ///< [n, dv]
  methods::HeadPrompt head;   ///< whose draws are used; its arrays are not

  Index outputs() const { return dv == 0 ? 1 : dv; }  ///< s of the theorems
  std::span<const float> key(Index i) const { return {keys.data() + i * d, static_cast<std::size_t>(d)}; }
  std::span<const float> value(Index i) const { return {values.data() + i * dv, static_cast<std::size_t>(dv)}; }
};
/// The first n tokens of a subject, or all of them.
WalkSample walk_sample(const Subject& subject, Index n, bool with_values);

/// The implementation under test: the signs of a sample for a seed.
using SignWalk = std::function<methods::WalkSigns(const WalkSample&, const methods::WalkSettings&, std::uint32_t seed)>;
/// softmax_balance(), the implementation of the methods, on a backend.
SignWalk library_walk(Backend& backend);

/// key = a max |k|^2 and value = max |v|. R = exp(key / 2) value overflows for long keys, so only its logarithm is
/// formed.
struct Radii {
  double key = 0, value = 1;
  double log_r() const;
};
Radii radii(const WalkSample& sample);

/// <u_i, u_j> / R^2: [n, n].
std::vector<double> relative_gram(const WalkSample& sample);
/// |u_i|^2 / R^2: [n].
std::vector<double> relative_norms2(const WalkSample& sample);

/// sigma^2 / R^2 of the walk with threshold c R^2, for any number of steps: c^2 / (2 c - 1), c > 1/2.
double sub_gaussian(double c);
/// The same for vectors of these squared lengths: s <- s + x [1 + s (x - 2 c) / c^2]_+.
double sub_gaussian(double c, std::span<const double> relative_norms2);
/// The length that a 1-sub-Gaussian vector in s dimensions exceeds with probability at most exp(-L):
/// sqrt(s + 2 sqrt(s L) + 2 L) (Hsu, Kakade, Zhang, 2012).
double sub_gaussian_norm(Index s, double log_probability);
/// Bound on the probability that any of n steps of a walk exceeds c R^2: 2 n exp(1/2 - c).
double fail_bound(double c, Index n);

/// The vectors exp(a <k_i, q>) v_i of one query, relative to exp(shift): exponentials of long keys overflow. All
/// lengths and bounds that they are compared with are relative to exp(shift) too.
struct QueryRows {
  Index outputs = 1;
  double shift = 0;             ///< the largest logit
  std::vector<double> rows;     ///< [n, outputs]
  double log_feature_norm = 0;  ///< ln |phi(q)| = a |q|^2 / 2
  double absolute = 0;          ///< sum of the lengths of the rows, which no signed sum exceeds
  double random_signs = 0;      ///< root of the sum of their squares: root mean square of sums with random signs
  std::vector<double> total() const;
  /// factor exp(exponent - shift); infinite where it overflows. factor >= 0.
  double relative(double factor, double exponent) const;
  /// factor R |phi(q)|, the unit of all bounds.
  double bound(double factor, const Radii& radius) const { return relative(factor, radius.log_r() + log_feature_norm); }
};
std::vector<QueryRows> query_rows(const WalkSample& sample, const std::vector<float>& queries);
/// Length of the sum of weight_i row_i.
double weighted_norm(const QueryRows& query, std::span<const double> weights);

/// The results of walks with several seeds.
struct WalkRuns {
  double c = 0;                               ///< 0: greedy
  std::vector<std::vector<double>> errors;    ///< [query][seed]: length of the signed sum
  std::int64_t failed = 0;                    ///< seeds with a FAIL
  std::int64_t fails = 0, steps = 0;          ///< over all seeds
  std::int64_t larger_halves = 0, seeds = 0;  ///< larger_halves: seeds that keep more than n/2
};
WalkRuns run_walks(const WalkSample& sample, std::span<const QueryRows> queries, const methods::WalkSettings& settings,
                   Index seeds, const SignWalk& walk, const CheckContext& context);

/// Adds the row of a literal bound that is vacuous at every size that is run, and not from `needed` tokens on.
void add_vacuous(CheckContext& context, const Statement& statement, double needed);
/// Seeds at which walks over n tokens of d + s numbers take about half a second; at least 10.
Index affordable_walks(const WalkSample& sample, Index seeds);

/// Rows that every check of a walk adds: the rate of FAIL, and the signed sums over those of random signs.
void add_fail_row(CheckContext& context, const WalkRuns& runs, Index n, const std::string& params);
void add_ratio_row(CheckContext& context, const WalkRuns& runs, std::span<const QueryRows> queries,
                   const std::string& params);

}  // namespace kvbench::bounds
