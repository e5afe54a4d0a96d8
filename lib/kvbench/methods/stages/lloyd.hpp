// SPDX-License-Identifier: Apache-2.0
// Lloyd's loop (k-means): points join their nearest centroid, centroids move to the mean of their points, until no label
// changes. What methods differ in is the distance, how they start and when they stop.
//
// Complexity: O(n C d) an iteration; for n = 32768, C = n/80, d = 128 that is 3.4 GFlop, and tens of iterations are usual.
#pragma once

#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// What makes a centroid the nearest: the largest cosine, the least Euclidean distance, the largest inner product.
enum class Distance { cosine, l2, ip };

struct LloydOptions {
  Distance distance = Distance::cosine;
  Index iterations = 300;  ///< of assigning and moving, at most; at least 1
  /// Points are assigned once more where `iterations` stopped the loop, so that each is with its nearest centroid; without it
  /// each centroid is the mean of its points.
  bool relabel = false;
};

struct Clustering {
  std::vector<std::int32_t> labels;  ///< [n] cluster of each point
  Buffer<const float> centroids;     ///< [c, d] means of the points as they are, whatever the distance
  Index iterations = 0;              ///< done
  bool fixed = false;                ///< labels no longer changed
};

/// Clusters `points` [n, d], starting from the points numbered `start` as centroids (distinct numbers, at most n). Ties go to
/// the lower cluster; a cluster that loses all its points keeps its centroid.
Clustering lloyd(const Buffer<const float>& points, const std::vector<TokenId>& start, const LloydOptions& options,
                 Backend& backend);

}  // namespace kvbench
