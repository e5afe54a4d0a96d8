// SPDX-License-Identifier: Apache-2.0
// subgen: clusters the keys of the stream and samples each cluster for the denominator; samples values by their squared
// norm for the numerator. SubGen, arXiv 2402.06082, Algorithm 1.
//
// For each token (k, v) of the stream, prompt and decoded alike:
//   clusters  The key joins the cluster i of the nearest representative x within delta (ties: the lowest cluster): n_i
//             += 1, and the key replaces each of the t samples of the cluster with probability 1/n_i. If no
//             representative lies within delta, the key opens a cluster whose t samples are copies of it.
//   values    mu += |v|^2; the pair replaces each of the s slots with probability |v|^2 / mu.
// A query is answered by N = the s slots with weight mu / (s |v|^2) and D = the samples of each cluster with weight n_i
// / t; mu includes the newest token. One token drawn several times is one entry with the summed weight.
//
// Parameters:
//   t          samples of each cluster, default 4 (the paper gives only the order of t)
//   s          value slots, default 0: half of the budget, rounded down, at least 1
//   delta      radius, in units of the keys; 0 (default): not given
//   delta_r    radius as the product delta * r in which Theorem 1 and Corollary 1 are stated, r = scale * max |observed
//              q|: the text has no 1/sqrt(d), so the scale of the logits is folded into q. Needs observed queries. 0
//              (default): not given
//   max_pairs  limit of 10 n m', the approximate number of pairs that the search for the radius compares, default 2^37
//              (no source; minutes); above, `infeasible`
// Radius: with delta or delta_r the sets have the size that Algorithm 1 gives them, and the budget does not bind (it
// only sets s). Otherwise the radius is the smallest one found such that after the context m' (1 + t) d + s (d + dv) <=
// B (d + dv) numbers, m' = clusters: see smallest_leader_partition(). Where not even one cluster fits beside the s
// slots the configuration is `infeasible`; t is never lowered. At d = dv and the defaults that is B < 5. A context that
// fits entirely, or is empty, gives radius 0: each distinct key is a cluster and the denominator is exact. In decode
// delta remains that of the end of the context, as Algorithm 1 does not change it. Decoded tokens may open clusters and
// the sets may grow beyond the budget; the footprint reports the actual size.
//
// Readings where the text contradicts itself: the preamble of Lemma 1 samples by |k|^2, lemma and listing by |v|^2;
// this is the latter. Zero values are never held (0/0 in line 29, and they add nothing); where all values are zero, z =
// 0. The published experiments (section 3.2) measure another algorithm: `subgen-kcenter`.
// N and D are drawn independently: where the samples of D lack the peak of a sharp query that N holds, z / tau has no
// bound and can overflow fp32. Medians over queries are more informative than means.
// Complexity: O(m' d) per token for the nearest representative, once for all seeds; O((s + m't) log n) per seed for the
// samples; O((s + m't) d) per query. The search for a radius takes several passes over the context: more than an exact
// pass over a window of queries. Memory: m' (1 + t) d + s (d + dv) numbers, and m' + s + 1 for n_i, |v|^2 and mu.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

struct SubgenParams {
  Index t = 4;
  Index s = 0;
  double delta = 0;
  double delta_r = 0;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, SubgenParams& params);
/// Throws Error where delta and delta_r are both given.
void check(const SubgenParams& params);

/// s for a budget of B tokens.
Index subgen_value_slots(const SubgenParams& params, Index budget);
/// The number of clusters that fit beside the s slots into the budget's B (d+dv) numbers; may be 0.
Index subgen_cluster_capacity(const SubgenParams& params, Index budget, Index d, Index dv);

MethodInfo subgen_method();

}  // namespace kvbench::methods
