// SPDX-License-Identifier: Apache-2.0
// The clusters of SubGen's keys (arXiv 2402.06082, Algorithm 1, lines 12-22). They depend on keys and radius only, so
// that all seeds share one partition.
#pragma once

#include <optional>
#include <vector>

#include <kvbench/core/ids.hpp>
#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

struct LeaderPartition {
  float radius = 0;                      ///< delta
  std::vector<std::int32_t> labels;      ///< [n] cluster of each token, numbered in order of opening
  std::vector<TokenId> representatives;  ///< [m'] the token that opened each cluster

  Index clusters() const { return static_cast<Index>(representatives.size()); }
};

/// Each key in order joins the cluster of its nearest representative if that lies within `radius`, otherwise it opens a
/// cluster; ties: the lowest cluster. Absent where that takes more than `capacity` clusters. keys: [n, d].
std::optional<LeaderPartition> leader_partition(Backend& backend, const Buffer<const float>& keys, float radius,
                                                Index capacity);

/// The partition of the smallest radius found that takes at most `capacity` >= 1 clusters. Radius 0 where that fits;
/// else bisection between 0 and 1.001 times the largest distance from the first key: at most 40 steps, fewer once the
/// capacity is used in full or the radius is known to 1/1000. The number of clusters is not monotone in the radius: the
/// last radius that fitted is returned, and a smaller one may exist. The result depends on keys and capacity only.
LeaderPartition smallest_leader_partition(Backend& backend, const Buffer<const float>& keys, Index capacity);

}  // namespace kvbench::methods
