// SPDX-License-Identifier: Apache-2.0
// Similarity of keys by their distance in tokens (Chelsea, arXiv 2506.11418, observations 1 and 2: it decreases with
// distance and is convex).
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::bounds {

/// Entry l - 1: the mean cosine of all pairs of rows at distance l, l = 1 .. min(max_distance, rows - 1). A row of
/// zeros has cosine 0 with every other. Computes n * (256 + max_distance) inner products in blocks of 256 rows; sums
/// are formed on the host, in fp64 and in a fixed order.
std::vector<double> similarity_by_distance(const Buffer<const float>& rows, Index max_distance, Backend& backend);

}  // namespace kvbench::bounds
