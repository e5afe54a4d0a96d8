// SPDX-License-Identifier: Apache-2.0
// The checks of Chelsea (arXiv 2506.11418), a file each, which opens with the statement and the reading of it.
#pragma once

#include <functional>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/chelsea/settings.hpp>
#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::bounds {

// bias.cpp

/// Entries whose values are exponentials of logits: values[e][c] is the mean of e^{a <q_c, k_i> - shift_c} over the
/// entry.
struct MassEntries {
  std::vector<double> degrees;              ///< [E]
  std::vector<std::vector<double>> keys;    ///< [E][d]
  std::vector<std::vector<double>> values;  ///< [E][columns]
};

/// Keys, queries, and values that are the exponentials of their logits.
struct MassProblem {
  Index n = 0, d = 0;
  double scale = 1;
  std::span<const float> keys;               ///< [n, d]
  std::vector<std::vector<double>> queries;  ///< [columns][d]
  std::vector<double> shift;                 ///< [columns] largest logit
  std::vector<float> values;                 ///< [n, columns]
};
MassProblem mass_problem(const Subject& subject);

struct BiasCount {
  std::int64_t sums = 0, broken_sums = 0;        ///< the equations (1), and that of the mass: sum of g vbar = Z
  std::int64_t entries = 0, broken_entries = 0;  ///< the inequalities (2): one per entry and query
  std::int64_t merged = 0;                       ///< entries of more than one token
  double worst_sum = 0;                          ///< largest relative error of a sum
  double log_ratio = 0;                          ///< mean of ln(Z_hat / Z) over the queries without their negatives
  double lowest = 0;                             ///< smallest of these
};
BiasCount count_bias(const MassProblem& problem, const MassEntries& entries);

/// The entries that the method keeps for these keys and values.
MassEntries mass_entries(const MassProblem& problem, const Subject& subject, Index budget,
                         const MethodUnderTest& method, Backend& backend);

void check_chelsea_bias(CheckContext& context, const MethodUnderTest& method);

Check chelsea_bias();

// observations.cpp

/// Curves of blocks of tokens: [blocks][l - 1] mean cosine of the pairs (i, i + l) with i in the block.
using LagCurves = std::vector<std::vector<double>>;

/// Computed in fp64 on the host, from the first `max_tokens` tokens. Blocks of `block` tokens that have partners at all
/// `lags`; empty where there is no such block.
LagCurves lag_curves(std::span<const float> keys, Index d, Index lags, Index block, Index max_tokens);

/// The result of testing inequalities, each of which must have a mean >= 0 over the blocks.
struct ShapeTest {
  Index tested = 0;         ///< inequalities
  Index broken = 0;         ///< inequalities whose mean is below 0
  Index broken_surely = 0;  ///< inequalities whose 95 % interval lies below 0
  double worst = 0;         ///< smallest mean, or 0 where none is negative
  double p_against = 1;     ///< p-value of the data if all inequalities held, by Bonferroni
  double p_for = 0;         ///< p-value of the data if one of them did not
  double broken_share() const { return static_cast<double>(broken_surely) / static_cast<double>(tested); }
};
/// One inequality: the mean of its terms over units, with its interval, and the one-sided p-value of the sign that the
/// mean has.
struct TermTest {
  double mean = 0;
  Interval interval;  ///< 95 %
  double p = 1;
};
/// Over blocks of tokens, whose terms have either sign with equal probability if the mean is 0.
TermTest over_blocks(std::span<const double> terms);

/// values[inequality][unit].
ShapeTest test_shape(const std::vector<std::vector<double>>& values,
                     const std::function<TermTest(std::span<const double>)>& test_of);

/// The differences that must not be negative where curves decrease or are convex, from octave to octave and from lag to
/// lag.
std::vector<std::vector<double>> falls_by_octave(const LagCurves& curves);
std::vector<std::vector<double>> falls_by_lag(const LagCurves& curves);
std::vector<std::vector<double>> convex_by_octave(const LagCurves& curves);
std::vector<std::vector<double>> convex_by_lag(const LagCurves& curves);

/// Share of the variance of a curve that its best decreasing fit explains (pool adjacent violators).
double decreasing_r2(const std::vector<double>& curve);
/// Largest distance of a curve from the largest convex function below it, as a share of its range.
double convex_gap(const std::vector<double>& curve);

Check chelsea_observation1();
Check chelsea_observation2();

// outliers.cpp

/// The links of the first round in one head.
struct HeadLinks {
  std::int64_t layer = 0;
  Index kv_head = 0;
  double unlinked = 0, mean = 0;          ///< share of A tokens without a link, mean cosine of the best edges
  std::vector<double> unlinked_by_block;  ///< share of unlinked tokens in blocks of 32 A tokens
};
/// Index of the head with the largest mean over the blocks of this parity.
std::size_t worst_in_half(const std::vector<HeadLinks>& heads, std::size_t parity);
/// For each block, the unlinked share of that head less the mean of the other heads.
std::vector<double> excess_by_block(const std::vector<HeadLinks>& heads, std::size_t head);
/// The same for the blocks of the other parity only.
std::vector<double> against_others(const std::vector<HeadLinks>& heads, std::size_t head, std::size_t parity);

Check chelsea_observation3();
Check chelsea_outlier_heads();

// theorem61.cpp

/// For one n: the partitions that are better than the candidate on some ray, and those that equal it on all rays.
struct PartitionCount {
  std::int64_t partitions = 0;  ///< compared
  std::int64_t better = 0;
  std::int64_t equal = 0;  ///< the candidate itself included
};
/// The objective of the theorem. Bit i of a partition is set where token i is in B; 2 <= n <= 24. Compares half of the
/// 2^n partitions: the others are the same with A and B exchanged.
PartitionCount compare_partitions(int n, std::uint32_t candidate);
/// The objective of the algorithm: the sum over A tokens of the best edge, 0 where a side is empty. Compares all
/// partitions, or those with as many B tokens as the candidate.
PartitionCount compare_best_edges(int n, std::uint32_t candidate, bool balanced);
/// The partition with the odd tokens in B.
std::uint32_t alternating_partition(int n);

/// +1: A, -1: B.
using Sides = std::vector<int>;

/// Windows of neighbouring tokens, and those whose squared sum of signs is above the smallest possible one. Counts the
/// windows of 2 .. `longest` positions that hold a token, those that overlap the ends included. O(n longest).
struct WindowCount {
  std::int64_t windows = 0, above = 0;
};
WindowCount count_windows(std::span<const int> sides, Index longest);
/// x^T H_m x with H_m(i, j) = (m - |i - j|)_+, from the pairs of tokens and from the windows.
std::int64_t ray_by_pairs(std::span<const int> sides, Index m);
std::int64_t ray_by_windows(std::span<const int> sides, Index m);

/// The sides that the method gives to `tokens` tokens with random keys in chunks of `chunk` entries. Both are even, so
/// that half of the tokens can be merged into the others: the tokens whose ids are left are B.
Sides sides_of(const ChelseaUnderTest& chelsea, Index tokens, Index chunk, Backend& backend);

/// The certificate on the sides of the method.
void check_method_sides(CheckContext& context, const ChelseaUnderTest& chelsea);

Check chelsea_theorem61();

// partition.cpp

/// Cosines of the rows [n, d] with each other, [n][n].
using Cosines = std::vector<std::vector<double>>;
Cosines cosines_of(std::span<const float> rows, Index d);

/// What a partition keeps.
struct Kept {
  double pairs = 0;  ///< mean cosine of the pairs between A and B
  double edges = 0;  ///< mean over A of the largest cosine with a token of B
};
Kept kept_by(const Cosines& cosines, std::span<const int> sides);
/// The mean of random partitions with sides of equal size; `pairs` is the expectation, `edges` the mean of `draws`
/// partitions.
Kept kept_by_random(const Cosines& cosines, std::uint32_t draws);

Check chelsea_partition();

// tables.cpp

Check chelsea_table1();
Check chelsea_table2();
Check chelsea_table4();

}  // namespace kvbench::bounds
