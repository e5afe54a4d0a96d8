// SPDX-License-Identifier: Apache-2.0
// Curves of the rows of a head. How well tokens cluster: SubGen, arXiv 2402.06082, section 3.1 and Fig. 1: keys more
// than values. Similarity of keys by their distance in tokens: Chelsea, arXiv 2506.11418, observations 1 and 2: it
// decreases with distance and is convex.
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::measures {

/// Entry k - 1: the covering radius of the first k centres of greedy k-center (the largest distance of a point to its
/// nearest centre), divided by the spread of the points (the root mean square distance to their mean). The quotient
/// does not depend on the scale or position of the points, so that keys and values can be compared. The first centre is
/// point 0. k = 1 .. min(max_centres, points); 0 where all points are equal. Computes at most n * max_centres
/// distances.
std::vector<double> clusterability(const Buffer<const float>& points, Index max_centres, Backend& backend);

/// Entry l - 1: the mean cosine of all pairs of rows at distance l, l = 1 .. min(max_distance, rows - 1). A row of
/// zeros has cosine 0 with every other. Computes n * (256 + max_distance) inner products in blocks of 256 rows; sums
/// are formed on the host, in fp64 and in a fixed order.
std::vector<double> similarity_by_distance(const Buffer<const float>& rows, Index max_distance, Backend& backend);

}  // namespace kvbench::measures
