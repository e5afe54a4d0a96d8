// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), the first half of Theorem 1's proof (Eq. 5): tau = sum over clusters of (n_i/t) sum over
// the t samples of exp(<q,k>) is within 1 +- eta of Z = sum of all exp(<q,k>).
//
// Three bounds on eta at failure probability p, with rho = e^{2 delta r}, w_i = Z_i / Z
// (docs/theory/subgen.partition.md):
//   (i)   the paper's: Chernoff in each cluster, union over clusters:    eta = sqrt(3 rho ln(2m'/p) / t), for eta <= 1
//   (ii)  Bernstein over all samples, relative variance <= sinh^2(delta r) by Bhatia and Davis
//   (iii) Bernstein with the clusters' own variances and largest terms
// and two identities: E tau = Z, E (tau - Z)^2 = sum of n_i^2 var_i / t. Reading: Eq. (5) of the proof speaks of lines
// 24-28, which the listing numbers 26-31; radius delta gives diameter 2 delta, hence e^{2 delta r}.
#pragma once

#include <functional>

#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

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

}  // namespace kvbench::bounds
