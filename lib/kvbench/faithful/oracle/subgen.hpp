// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Algorithm 1, recomputed in fp64, serially: each token with each representative and each
// slot.
//
// A coin with probability p per slot and token (lines 17 and 26) is read as the method documents it: a slot that is
// filled when the total is M draws U once, keyed by the token that fills it, and is filled again at the first token at
// which the total reaches M / U. docs/theory/subgen.algorithm1.md derives that this is the same law.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/faithful/oracle/comparison.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {

/// The rules of Algorithm 1 that a fault could touch. The defaults state the paper, with the lines of its listing.
struct SubgenRules {
  using Row = std::span<const float>;

  // UpdateSoftmaxNormalizer
  bool nearest = true;        ///< line 12: the nearest representative; otherwise the first one within the radius
  double radius = 1;          ///< line 13: a key joins within this multiple of delta
  double decoded_radius = 1;  ///< further factor for decoded keys: delta is an input (line 1), which no line changes
  bool first_key_represents =
      true;                      ///< line 21 and Lemma 2 (1): the key that opened the cluster; otherwise the newest key
  bool samples_replaced = true;  ///< line 17
  // UpdateMatrixProduct
  /// Line 26 and Lemma 1: a token is sampled in proportion to |v|^2. The same weights sum to mu (line 6).
  std::function<double(Row key, Row value)> value_weight = [](Row, Row value) { return bounds::squared_norm(value); };
  // Both reservoirs
  /// lines 17 and 26: 1 / n_i after line 14 and |v|^2 / (mu + |v|^2) count the newest token
  bool newest_in_total = true;
  // QueryStreamAttn
  bool newest_in_mu = true;  ///< line 6 comes before line 7
  /// Line 29; `weight` is |v|^2.
  std::function<double(double mu, double s, double weight)> slot_weight = [](double mu, double s, double weight) {
    return mu / (s * weight);
  };
  /// Line 30; `size` is n_i.
  std::function<double(double size, double t)> sample_weight = [](double size, double t) { return size / t; };
  // The stream
  bool decoded_taken = true;  ///< lines 3 to 8: every token is taken
  // Random numbers: s slots and t samples per cluster are i.i.d. (Lemmas 1 and 2 (5)), so each has draws of its own
  std::uint32_t value_draw = 0, cluster_draw = 0x80000000u;  ///< number of the first slot's draw
  std::uint32_t draw_step = 1;                               ///< between slots
  bool seeded = true;                                        ///< the draws depend on the seed
};

/// Inputs of Algorithm 1 (line 1).
struct SubgenSizes {
  Index t = 4, s = 1;
  double delta = 0;
};

/// The clusters of the first tokens of a subject.
struct SubgenClusters {
  std::vector<std::int32_t> labels;  ///< [tokens] numbered as clusters open
  std::vector<TokenId> opened_by;    ///< [m']
  Index decided = 0;                 ///< tokens before the first decision that fp32 distances could take otherwise
};
/// Tokens from `prompt` on are decoded ones.
SubgenClusters subgen_clusters(const bounds::Subject& subject, Index prompt, Index tokens, double delta,
                               const SubgenRules& rules);

/// The radius that the budget chooses (methods/sampling/leader_partition.hpp): 0 where at most `capacity` >= 1 clusters
/// result, otherwise by bisection. Not decided where fp32 distances could count another number of clusters on the way.
struct SubgenRadius {
  double delta = 0;
  bool decided = true;
};
SubgenRadius subgen_budget_radius(const bounds::Subject& subject, Index tokens, Index capacity);
/// The most clusters m' with m' (1 + t) d + s (d + dv) <= B (d + dv).
Index subgen_most_clusters(const bounds::Subject& subject, const SubgenSizes& sizes, Index budget);

/// The lists M and S_i of one seed.
class SubgenLists {
 public:
  /// Keeps references to subject, clusters and rules.
  SubgenLists(const bounds::Subject& subject, const SubgenClusters& clusters, const SubgenSizes& sizes,
              std::uint32_t seed, const SubgenRules& rules);

  void take(Index token);
  std::vector<bounds::HeldEntry> entries() const;  ///< by increasing id, summed per token
  std::vector<TokenId> slots() const;              ///< [s] the token of each value slot; -1: none
  /// Whether no refill so far depends on the rounding of the totals.
  bool decided() const { return decided_; }

 private:
  struct Slot {
    TokenId token = -1;
    double weight = 0;  ///< of that token
    double until = 0;   ///< the total at which the slot is filled again
  };
  struct List {
    std::vector<Slot> slots;
    double total = 0, newest = 0;  ///< newest: the last weight in the total
  };
  void offer(List& list, Index token, double weight, std::uint32_t first_draw, bool replace);

  const bounds::Subject& subject_;
  const SubgenClusters& clusters_;
  SubgenSizes sizes_;
  const SubgenRules& rules_;
  methods::Draws draws_;
  List values_;
  std::vector<List> samples_;  ///< [m']
  bool decided_ = true;
};

/// The snapshots of observe_stream(), recomputed.
OracleRun subgen_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan, const SubgenSizes& sizes,
                        const SubgenRules& rules = {});

}  // namespace kvbench::faithful
