// SPDX-License-Identifier: Apache-2.0
// The state of `h2o`: the tokens that a head holds with their accumulated attention, and the rule of eviction. It
// contains no vectors and therefore is on the host.
#pragma once

#include <span>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/group.hpp>

namespace kvbench::methods {

/// One list of tokens per query head, or one for the kv head; all lists are equally long. Scores are stored per query
/// head; with per=kv_head they are reduced over the query group at each eviction.
class HeavyHitters {
 public:
  HeavyHitters(Index group, const GroupChoice& choice, Index heavy, Index recent);

  /// Holds the tokens 0 .. n-1 with the scores `sums` [G, n]. Only on an empty state.
  void hold(std::span<const float> sums);
  /// Adds a newer token with score 0.
  void add(TokenId id);
  /// Adds the attention [held] of one step of query head g, in the order of its list, to the scores.
  void observe(Index g, std::span<const float> attention);
  /// Evicts tokens until heavy + recent are left: those with the lowest scores before the last `recent` ones, ties to
  /// the oldest.
  void evict();

  Index rows() const { return static_cast<Index>(ids_.size()); }
  Index held() const { return static_cast<Index>(ids_.front().size()); }
  /// The list of query head g, in increasing order.
  std::span<const TokenId> of_head(Index g) const { return ids_[row_of(g)]; }
  /// All lists, [rows, held].
  std::vector<TokenId> ids() const;

 private:
  std::size_t row_of(Index g) const { return choice_.per_head() ? static_cast<std::size_t>(g) : 0; }
  /// The scores that decide over the first `count` tokens of a list.
  std::vector<double> decisive_scores(std::size_t row, std::size_t count) const;

  GroupChoice choice_;
  Index heavy_, recent_;
  std::vector<std::vector<TokenId>> ids_;    ///< by row
  std::vector<std::vector<double>> scores_;  ///< by query head, in the order of the ids of its row
};

}  // namespace kvbench::methods
