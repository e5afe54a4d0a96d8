// SPDX-License-Identifier: Apache-2.0
// The tokens that a head holds with the attention that each has gathered, and the rule that evicts the least of them: the state
// of `h2o`, on the host because it is numbers of tokens alone.
#pragma once

#include <span>
#include <vector>

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// One list of tokens a query head, or one for the kv head; all lists are equally long. Scores are kept by query head: where
/// the kv head selects, they are reduced over the group at each eviction.
class HeavyHitters {
 public:
  HeavyHitters(Index group, const GroupChoice& choice, Index heavy, Index recent);

  /// Holds the tokens 0 .. n-1, each query head's with these sums [G, n]. Only in the beginning.
  void hold(std::span<const float> sums);
  /// Holds a newer token, which has gathered nothing yet.
  void add(TokenId id);
  /// Adds the attention of one step by query head g, in the order of its list.
  void observe(Index g, std::span<const float> attention);
  /// Leaves heavy + recent tokens: of those before the last `recent` ones the least go, among equals the oldest.
  void evict();

  Index rows() const { return static_cast<Index>(ids_.size()); }
  Index held() const { return static_cast<Index>(ids_.front().size()); }
  /// The list of query head g, in increasing order.
  std::span<const TokenId> of_head(Index g) const { return ids_[row_of(g)]; }
  /// All lists, [rows, held].
  std::vector<TokenId> ids() const;

 private:
  std::size_t row_of(Index g) const { return choice_.per_head() ? static_cast<std::size_t>(g) : 0; }
  /// What decides over the first `count` tokens of a list.
  std::vector<double> decisive_scores(std::size_t row, std::size_t count) const;

  GroupChoice choice_;
  Index heavy_, recent_;
  std::vector<std::vector<TokenId>> ids_;    ///< by row
  std::vector<std::vector<double>> scores_;  ///< by query head, along the ids of its row
};

}  // namespace kvbench
