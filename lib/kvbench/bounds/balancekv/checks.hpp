// SPDX-License-Identifier: Apache-2.0
// The checks of BalanceKV (arXiv 2502.07861), a file each, which opens with the statement and the reading of it.
#pragma once

#include <kvbench/bounds/balancekv/stream_sketch.hpp>
#include <kvbench/bounds/balancekv/tree.hpp>
#include <kvbench/bounds/balancekv/walks.hpp>
#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::bounds {

// buckets.cpp

/// The number of buckets 2^{i-1} < |v| <= 2^i, not erased, after the first n tokens: line 4 with its inequality
/// corrected, line 9 with 2 n instead of 2^n, as the proof of Theorem 3.1 uses it. r is the largest norm of the n keys.
/// -1 where a norm is as near to a power of two as the rounding of fp32.
Index buckets_needed(const Subject& subject, Index n, double eps);

/// The number of buckets that the method holds: its note on value-norm buckets; -1 where there is none.
Index buckets_held(const Subject& subject, Index n, const MethodUnderTest& method, Backend& backend);

void check_buckets(CheckContext& context, const MethodUnderTest& method);

Check balancekv_buckets();
Check balancekv_bucket_count();

// exponent.cpp

struct ExponentSetup {
  Index tokens = 512;
  Index fixed_block = 32;
  Index rounds = 4;
  Index seeds = 30;
  std::uint32_t seed_offset = 0;
};

/// Assigns signs to a list in blocks, for one round of one seed.
using BlockSigns = std::function<std::vector<std::int32_t>(const WalkSample&, const std::vector<std::int32_t>& starts,
                                                           std::uint32_t draw)>;
/// softmax_balance() with a constant ("greedy", "tight", ...), over tokens or over pairs of tokens.
BlockSigns library_blocks(const std::string& constant, bool pairs, Backend& backend);

/// Slope of ln(error) over ln(tokens kept) of each seed: mean over queries. growing: block = the list.
std::vector<double> error_slopes(const WalkSample& sample, const std::vector<float>& queries,
                                 const ExponentSetup& setup, bool growing, const BlockSigns& signs,
                                 const std::function<void()>& poll);

/// Rows of one constant, fixed and growing side by side.
void check_exponent(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                    const ExponentSetup& setup, const std::string& constant, const BlockSigns& signs);

Check balancekv_exponent();

// lower_bound.cpp

/// n tokens with keys of random signs in d dimensions, bits as values, and the queries of the tokens 0, n/m, 2 n/m, ...
/// At the queries nearly all attention is on one token.
Subject index_instance(Index n, Index queries, Backend& backend);

/// Adds the row of one method: the errors of its answers to the queries, against 1/2.
void check_index_errors(CheckContext& context, const std::string& method, Index budget, std::span<const double> errors);

Check balancekv_lower_bound();

// memory_rate.cpp

/// Weights of the tokens, and the numbers that the cache holds.
struct HeldWeights : TokenWeights {
  double numbers = 0;
};
/// The implementation under test.
using WeighTokens = std::function<HeldWeights(Index budget, std::uint32_t seed)>;

struct MemoryRate {
  std::string method;   ///< with its settings
  double expected = 0;  ///< slope
  Index seeds = 0;
  WeighTokens weigh;
};
/// Adds the slope of ln(error of the answer) over ln(numbers held) at n/2 .. n/16 tokens.
void check_memory_rate(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                       const MemoryRate& rate);

Check balancekv_memory_rate();

// theorem31.cpp

void check_theorem31(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem31Setup& setup, const StreamSketch& sketch);

Check balancekv_theorem31();

// theorem32.cpp

struct Theorem32Setup {
  Index tokens = 128;  ///< in the walk
  double delta = 0.1;
  Index seeds = 400;
  Index seeds_of_ratios = 100;  ///< for constants other than `tight`, whose rows only report ratios
};
/// Adds the rows of one sample: the discrepancy against the tight and the data bound, the fitted constant, rates of
/// FAIL, ratios to random signs, sizes of C'.
void check_theorem32(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem32Setup& setup, const SignWalk& walk);

/// Adds the row of the literal bound at the smallest number of tokens of the subject where it is below the trivial
/// bound, with the values of the head or with v = 1; or one row with the n* at which it would be.
void check_theorem32_literal(CheckContext& context, const Subject& subject, const Theorem32Setup& setup,
                             const SignWalk& walk);

Check balancekv_theorem32();

// theorem33.cpp

struct Theorem33Setup {
  Index t = 64, levels = 2;
  double delta = 0.1;
  Index seeds = 400;
};
void check_theorem33(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem33Setup& setup, const TreeSketch& sketch);

/// Adds the row of the literal bound at T = 1, t = n/2 and the smallest n where it is below the trivial one, with the
/// values of the head or with v = 1; or one row with n*.
void check_theorem33_literal(CheckContext& context, const Subject& subject, const Theorem33Setup& setup,
                             const TreeSketch& sketch);

Check balancekv_theorem33();

// theorem34.cpp

/// Vectors for a walk without feature map, which uses their own inner products.
struct PlainVectors {
  WalkSample sample;               ///< keys of zero, vectors as values
  std::vector<QueryRows> queries;  ///< rows <u_i, u>; ln |u| in place of ln |phi(q)|
};
PlainVectors plain_vectors(const std::vector<float>& vectors, const std::vector<float>& directions, Index d, Index n);

void check_theorem34(CheckContext& context, const PlainVectors& vectors, Index seeds, const SignWalk& walk);

/// Adds the row of the literal bound at the smallest n where it is below the trivial one, or one row with n*.
void check_theorem34_literal(CheckContext& context, Index tokens, const std::function<PlainVectors(Index)>& vectors_of,
                             const SignWalk& walk);
/// Adds the slopes of the discrepancy over n = 64 .. 4096 for the tight constant and for c = 1.
void check_theorem34_rate(CheckContext& context, Index tokens, const std::function<PlainVectors(Index)>& vectors_of,
                          const SignWalk& walk);

Check balancekv_theorem34();

// walk.cpp

/// The same tokens; keys are scaled down to a max |k|^2 = largest where they are longer.
WalkSample with_short_keys(WalkSample sample, double largest);

/// Tests of the law of single steps.
struct StepLaw {
  double classes = 1;             ///< p-value over ten classes of p
  double drift = 1;               ///< p-value of the coefficient of <w, u> / (c R^2)
  double drift_ratio = NAN;       ///< this coefficient over its prescribed value
  std::int64_t forced = 0;        ///< steps whose p is 0 or 1
  std::int64_t forced_wrong = 0;  ///< of these, steps with the other sign
  std::int64_t steps = 0;
  double mean_bias = 0;  ///< mean |p - 1/2|
};
StepLaw step_law(const WalkSample& sample, double c, Index seeds, const SignWalk& walk,
                 const std::function<void()>& poll);

/// The pivot of a symmetric matrix [n, n] that is negative beyond rounding, or 0 where there is none (LDL^T, largest
/// pivot first).
double negative_pivot(std::vector<double> matrix, Index n);

void check_walk(CheckContext& context, const WalkSample& sample, const SignWalk& walk);

Check balancekv_walk();

}  // namespace kvbench::bounds
