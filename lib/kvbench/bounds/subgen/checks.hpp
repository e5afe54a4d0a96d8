// SPDX-License-Identifier: Apache-2.0
// The checks of SubGen (arXiv 2402.06082), a file each, which opens with the statement and the reading of it.
#pragma once

#include <functional>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

// amm.cpp

/// Moments of z for numbers x in place of the exponentials.
struct ProductLaw {
  std::vector<double> mean;  ///< V^T x
  double mean2 = 0;          ///< |V^T x|^2
  double variance = 0;       ///< E |z - V^T x|^2
  double largest = 0;        ///< of the centred terms of z
  double kurtosis = 0;       ///< E |Y|^4 / (E |Y|^2)^2 of one centred term Y
  double along = 0;          ///< E <z - V^T x, u>^2, u the direction of V^T x
};
ProductLaw product_law(const Subject& subject, const SubgenValues& values, std::span<const double> x, Index s);

/// eta of Markov and of Bernstein at failure probability p, in units of |a| |V|_op.
struct ProductBounds {
  double markov_literal, markov_tight, bernstein;
};
ProductBounds product_bounds(const ProductLaw& law, const SubgenValues& values, const SubgenQuery& query, Index s,
                             Index d, double p);

void check_product(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries, Index s,
                   const Sketcher& sketcher);

/// Adds the row of the literal bound at s = 4 d / (p x^2), half of the trivial bound x of the best query, or one row
/// with s*; and the slope of the error of z over s.
void check_product_sizes(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries,
                         const std::function<Sketcher(Index s)>& sketcher_of);

Check subgen_amm();

// keys_cluster.cpp

struct CentreDispersion {
  double evenness = 0;  ///< e to the entropy of the cluster sizes, over the number of centres; 1: equal sizes
  double distance = 0;  ///< root mean square distance of two centres over that of two points
};
/// Of greedy k-center from the first of the rows [n, d]; each point belongs to its nearest centre.
CentreDispersion centre_dispersion(std::span<const float> rows, Index d, Index centres);

Check subgen_keys_cluster();
Check subgen_dispersion();

// lemma1.cpp

/// The token in each slot after each of `times` tokens (increasing), [times][slots], for one seed.
using SlotHistory = std::function<std::vector<std::vector<TokenId>>(std::uint32_t seed, std::span<const Index> times)>;

/// Adds the row that sum of wN |v|^2 over the entries is mu of the first tokens. One sketch for each of `tokens`.
void check_mu(CheckContext& context, const SubgenValues& values, std::span<const Index> tokens,
              std::span<const SubgenSketch> sketches);
/// Adds the row that the entries count each token by the law: wN = count * mu / (s |v|^2).
void check_entry_counts(CheckContext& context, const SubgenValues& values, Index slots, const Sketcher& sketcher);
/// Adds the rows of the slots' law at each of `times`, of pairs of slots and of pairs of times.
void check_slots(CheckContext& context, const SubgenValues& values, std::span<const Index> times,
                 const SlotHistory& history);

Check subgen_lemma1();

// lemma2.cpp

/// Adds the rows (1) to (4) and line 12 (the nearest representative is the one joined) for the clusters and entries
/// that the first keys of the subject led to.
void check_clusters(CheckContext& context, const SubgenSetup& setup, const SubgenSketch& sketch);
/// Adds the rows of (5).
void check_samples(CheckContext& context, const SubgenSetup& setup, const Sketcher& sketcher);

Check subgen_lemma2();

// partition.cpp

/// Moments of tau for numbers x in place of the exponentials.
struct TauLaw {
  double total = 0;          ///< sum of x
  double variance = 0;       ///< E (tau - total)^2
  double cumulant4 = 0;      ///< fourth cumulant of tau
  double largest = 0;        ///< of the centred terms, n_i/t |x - mean_i|
  double shares2 = 0;        ///< sum of w_i^2 over clusters of more than one key: the others are exact
  double largest_share = 0;  ///< max w_i of the same
  double ratio = 1;          ///< largest max/min of x within a cluster
  Index shared = 0;          ///< clusters of more than one key
};
TauLaw tau_law(std::span<const double> x, const SubgenSetup& setup);

/// eta of the three tiers at failure probability p; relative to Z. NaN where a tier has no such constant.
struct PartitionBounds {
  double union_literal, union_tight, variance_tight, variance_data;
};
/// r: of the theorem, for the literal constant; the others take the norm of the query itself.
PartitionBounds partition_bounds(const TauLaw& law, const SubgenSetup& setup, double query_norm, double r, Index n,
                                 double p);

/// What fp32 logits may add to a relative error.
double logit_rounding(const Subject& subject, const SubgenQuery& query);

void check_partition(CheckContext& context, const SubgenSetup& setup, std::span<const SubgenQuery> queries,
                     const Sketcher& sketcher);

/// Adds the row of the literal bound at t = 12 e^(2 delta r) ln(2n/p), which makes it 1/2, at the first delta r of 1/4
/// .. 2 at which the samples of all clusters are affordable; or one row with the least m' t*.
void check_partition_literal(CheckContext& context, std::span<const SubgenQuery> queries,
                             const std::function<Sketcher(const SubgenSetup&)>& sketcher_of);
/// Adds the slope of the error of tau over t.
void check_partition_rate(CheckContext& context, std::span<const SubgenQuery> queries,
                          const std::function<Sketcher(const SubgenSetup&)>& sketcher_of);

Check subgen_partition();

// size.cpp

/// m' after each token, from labels that are numbered as clusters open.
std::vector<double> cluster_counts(std::span<const std::int32_t> labels);

/// Slope of log m'(n) over log n between n/16 and n, at `points` prefixes evenly spaced in log n.
double growth_exponent(std::span<const double> counts, int points = 16);

/// The exponent of a stream as a whole and of its disjoint quarters, each from its own first token on; the interval is
/// Student's over the quarters, 95 %.
struct Growth {
  double exponent = 0;
  Interval interval;
};
Growth cluster_growth(const Subject& subject, float delta, Backend& backend);

/// Adds the row m'(delta) <= m'(delta/2), with both as bounds of m(delta).
void check_sizes_nest(CheckContext& context, double delta, Index at_delta, Index at_half);

/// Adds the row of Corollary 1: with t ~ ln n, the numbers that the method holds grow along the stream no faster than
/// m' t. `footprint`: of the method at a setup after some tokens.
void check_memory_growth(CheckContext& context, const SubgenSetup& setup, const Growth& growth,
                         const std::function<methods::Footprint(const SubgenSetup&, Index)>& footprint);

Check subgen_size();
Check subgen_corollary1();
Check subgen_quantities();

// table1.cpp

Check subgen_table1();

// theorem1.cpp

/// t and s that the derivation grants eps and p with: half of p and a third of eps for each of tau and z.
struct TheoremSizes {
  double t = 1, s = 1;
};
TheoremSizes explicit_sizes(const SubgenSetup& setup, const SubgenValues& values, std::span<const SubgenQuery> queries,
                            double eps, double p);
/// The same with the constants of Omega taken as 1.
TheoremSizes literal_sizes(double delta_r, Index n, Index d, double eps);

/// Numbers kept, m'(d + td + 1) + s(d + dv + 1), over the n(d + dv) of the exact cache.
double memory_ratio(Index clusters, double t, double s, Index n, Index d, Index dv);

/// Adds the row that Eq. 3 holds for `eps` in every query, or where eps is NaN for the accuracy that the tiers grant at
/// the setup's t and s.
struct AttentionInputs {
  const SubgenSetup& setup;
  const SubgenValues& values;
  std::span<const SubgenQuery> queries;
};
void check_attention(CheckContext& context, std::string part, const AttentionInputs& inputs, double eps, Index seeds,
                     const Sketcher& sketcher);

Check subgen_theorem1();

}  // namespace kvbench::bounds
