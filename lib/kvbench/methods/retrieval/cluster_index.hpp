// SPDX-License-Identifier: Apache-2.0
// Clusters of tokens with their centroids, and the clusters that answer a query: those whose centroids have the largest
// inner products with it (ClusterKV, arXiv 2412.03213, sections III-C and IV-C).
#pragma once

#include <span>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/lloyd.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

/// Treatment of the last cluster where it exceeds the budget: trim cuts it to its earliest tokens, pad takes it whole.
enum class Fill { trim, pad };

/// A copy shares the centroids of the original.
class ClusterIndex {
 public:
  explicit ClusterIndex(Index d) : d_(d) {}

  /// Adds the clusters of the tokens first, first + 1, ... They get the next cluster ids.
  void add(const Clustering& clustering, Index first, Backend& backend);

  Index tokens() const { return static_cast<Index>(members_.size()); }
  Index clusters() const { return static_cast<Index>(begin_.size()) - 1; }

  /// The tokens that answer each query, with their cluster ids: those of the best clusters until `budget` tokens are
  /// selected. Ties go to the lower cluster; clusters without tokens are skipped.
  EntryTable select(const QueryBlock& queries, Index budget, Fill fill, const GroupChoice& choice,
                    Backend& backend) const;

 private:
  using Clusters = std::vector<std::int32_t>;

  Index size(std::int32_t cluster) const {
    return begin_[static_cast<std::size_t>(cluster) + 1] - begin_[static_cast<std::size_t>(cluster)];
  }
  /// Clusters in falling order of their scores, until they hold `budget` tokens together.
  Clusters best(std::span<const float> scores, Index budget) const;
  /// Number of tokens that a budget takes of these clusters, in order.
  Index taken(const Clusters& clusters, Index budget, Fill fill) const;

  Index d_;
  Buffer<const float> centroids_;   ///< [clusters, d]; absent without clusters
  std::vector<TokenId> members_;    ///< by cluster, in increasing order within each
  std::vector<Index> begin_ = {0};  ///< [clusters + 1] first member of each cluster
};

}  // namespace kvbench::methods
