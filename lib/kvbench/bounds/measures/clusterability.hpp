// SPDX-License-Identifier: Apache-2.0
// How well the tokens of a head cluster (SubGen, arXiv 2402.06082, section 3.1 and Fig. 1: keys more than values).
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::bounds {

/// Entry k - 1: the covering radius of the first k centres of greedy k-center (the largest distance of a point to its
/// nearest centre), divided by the spread of the points (the root mean square distance to their mean). The quotient
/// does not depend on the scale or position of the points, so that keys and values can be compared. The first centre is
/// point 0. k = 1 .. min(max_centres, points); 0 where all points are equal. Computes at most n * max_centres
/// distances.
std::vector<double> clusterability(const Buffer<const float>& points, Index max_centres, Backend& backend);

}  // namespace kvbench::bounds
