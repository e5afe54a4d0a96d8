// SPDX-License-Identifier: Apache-2.0
// Lloyd's loop (k-means): points are assigned to their nearest centroid and centroids are set to the mean of their
// points, until no label changes. Methods differ in the distance, the initial centroids and the stopping rule.
//
// Complexity: O(n C d) per iteration; for n = 32768, C = n/80, d = 128 that is 3.4 GFlop, and tens of iterations are
// usual.
#pragma once

#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// The nearest centroid is the one with the largest cosine, the least Euclidean distance, or the largest inner product.
enum class Distance { cosine, l2, ip };

struct LloydOptions {
  Distance distance = Distance::cosine;
  Index iterations = 300;  ///< maximum, at least 1
  /// Where `iterations` stopped the loop: true assigns all points once more, so that each point has the label of its
  /// nearest centroid; false leaves each centroid the mean of its points.
  bool relabel = false;
};

struct Clustering {
  std::vector<std::int32_t> labels;  ///< [n] cluster of each point
  Buffer<const float> centroids;     ///< [c, d] means of the points, not normalised, for every distance
  Index iterations = 0;              ///< iterations run
  bool fixed = false;                ///< the last assignment changed no label
};

/// Clusters `points` [n, d], with the points at the indices `start` as initial centroids (distinct, at most n). Ties go
/// to the lower cluster; a cluster that loses all its points keeps its centroid.
Clustering lloyd(const Buffer<const float>& points, const std::vector<TokenId>& start, const LloydOptions& options,
                 Backend& backend);

}  // namespace kvbench::methods
