// SPDX-License-Identifier: Apache-2.0
// Clusters of consecutive tokens whose centroids and mean values can stand for them (RetroInfer, arXiv 2505.02922).
#pragma once

#include <vector>

#include <kvbench/core/ids.hpp>
#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

struct EstimatedClusters {
  Buffer<const float> centroids;             ///< [C, d] means of the keys
  Buffer<const float> values;                ///< [C, dv] means of the values
  std::vector<std::vector<TokenId>> tokens;  ///< [C] in increasing order, at least one each
};

/// The clusters of the tokens first, first + 1, ... with these keys and values, at least one: those that have tokens,
/// in the order of their initial centroids. `count` initial centroids, a multiple of `segments`; At most `iterations`
/// with normalised centroids within each segment, until labels are fixed, and one over all tokens and centroids.
EstimatedClusters segmented_clusters(const Buffer<const float>& keys, const Buffer<const float>& values, Index first,
                                     Index count, Index segments, Index iterations, Backend& backend);

}  // namespace kvbench::methods
