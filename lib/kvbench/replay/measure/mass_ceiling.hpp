// SPDX-License-Identifier: Apache-2.0
// The most attention mass that any eviction can keep: of all sets of k tokens of the context that answer every query,
// none has more mass than the k tokens with the largest sums of exact attention over the evaluated queries. The tokens
// after the context count as kept.
#pragma once

#include <optional>
#include <vector>

#include <kvbench/replay/exact/exact_pass.hpp>
#include <kvbench/replay/measure/host_entries.hpp>

namespace kvbench::replay {

/// Exact attention to each token of the method's context, summed over the evaluated queries of a kv head. Shared by
/// all configurations of the head; used by one thread at a time.
class ContextMass {
 public:
  explicit ContextMass(const Head& head);

  /// Adds the queries of a block.
  void add(const ExactBlock& exact);

  /// The largest mean of the mass over the queries of query head g, or of all query heads where g is absent, with
  /// `kept` of the tokens in one set, and all tokens outside the context. Call after the last block.
  double ceiling(std::optional<Index> g, Index kept);

 private:
  const std::vector<double>& best_sums(std::optional<Index> g);

  Index group_, first_, tokens_;
  double queries_ = 0;                          ///< of one query head
  std::vector<double> sums_;                    ///< [G, tokens_]
  std::vector<std::vector<double>> best_sums_;  ///< by query head, then of all: [k] sum of the k largest; or empty
};

/// The tokens of the context that answer the queries of one configuration, as long as one set of tokens answers all
/// queries of a query head, and tokens of the context only leave it.
class ShrinkingSets {
 public:
  explicit ShrinkingSets(const Head& head);

  void add(const HostEntries& entries);

  /// The number of tokens of the context in the set of query head g at the first query; absent where no such set
  /// answers.
  std::optional<Index> kept(Index g) const;
  /// Whether query heads have sets of their own.
  bool per_head() const { return per_head_; }

 private:
  void add_row(const HostEntries& entries, Index g);

  Index group_;
  std::int32_t first_, last_;
  bool started_ = false, applies_ = true, per_head_ = false;
  std::vector<std::vector<bool>> held_;  ///< by query head: tokens of the context in the set of the first query
  std::vector<Index> kept_;              ///< by query head
};

}  // namespace kvbench::replay
