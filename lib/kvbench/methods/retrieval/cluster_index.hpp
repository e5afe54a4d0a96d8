// SPDX-License-Identifier: Apache-2.0
// Clusters of tokens with their centroids, and the clusters that answer a query: those whose centroids have the largest inner
// products with it (ClusterKV, arXiv 2412.03213, sections III-C and IV-C).
#pragma once

#include <span>
#include <vector>

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/stages/lloyd.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// What happens to the last cluster where it does not fit the budget any more: cut to its earliest tokens, or taken whole.
enum class Fill { trim, pad };

/// Copies share the centroids.
class ClusterIndex {
 public:
  explicit ClusterIndex(Index d) : d_(d) {}

  /// Adds the clusters of the tokens first, first + 1, ... They get the next cluster numbers.
  void add(const Clustering& clustering, Index first, Backend& backend);

  Index tokens() const { return static_cast<Index>(members_.size()); }
  Index clusters() const { return static_cast<Index>(begin_.size()) - 1; }

  /// The tokens that answer each query, with their clusters as groups: the best clusters until a budget's tokens are taken;
  /// ties go to the lower cluster, clusters without tokens are passed over. One table for each of the falling `budgets`: what
  /// it takes beside the next one.
  std::vector<EntryTable> select(const QueryBlock& queries, std::span<const Index> budgets, Fill fill,
                                 const GroupChoice& choice, Backend& backend) const;

 private:
  using Clusters = std::vector<std::int32_t>;

  Index size(std::int32_t cluster) const {
    return begin_[static_cast<std::size_t>(cluster) + 1] - begin_[static_cast<std::size_t>(cluster)];
  }
  /// The best clusters of each row of queries.
  std::vector<Clusters> ranked(const QueryBlock& queries, Index budget, const GroupChoice& choice, Backend& backend) const;
  std::vector<std::int32_t> best(std::span<const float> scores, Index budget) const;
  /// Tokens of a row's clusters, one after the other, that a budget takes.
  Index taken(const Clusters& row, Index budget, Fill fill) const;
  /// Tokens [from[r], to[r]) of each row's clusters.
  EntryTable table(const std::vector<Clusters>& chosen, const std::vector<Index>& from, const std::vector<Index>& to,
                   Backend& backend) const;

  Index d_;
  Buffer<const float> centroids_;   ///< [clusters, d], absent where there is none
  std::vector<TokenId> members_;    ///< by cluster, in increasing order inside each
  std::vector<Index> begin_ = {0};  ///< [clusters + 1] where the members of each begin
};

}  // namespace kvbench
