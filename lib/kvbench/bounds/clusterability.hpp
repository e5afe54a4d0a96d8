// SPDX-License-Identifier: Apache-2.0
// How well the tokens of a head cluster (SubGen, arXiv 2402.06082, section 3.1 and Fig. 1: keys more than values).
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// Entry k - 1: the covering radius of the first k centres of greedy k-center (the farthest point's distance to its nearest
/// centre), divided by the spread of the points (root mean square distance to their mean): neither scale nor position of the
/// cloud matters, so keys and values compare. The first centre is point 0. k = 1 .. min(max_centres, points); 0 where all
/// points are equal. At most n * max_centres distances.
std::vector<double> clusterability(const Buffer<const float>& points, Index max_centres, Backend& backend);

}  // namespace kvbench
