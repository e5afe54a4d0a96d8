// SPDX-License-Identifier: Apache-2.0
// How alike keys are that stand some tokens apart (Chelsea, arXiv 2506.11418, observations 1 and 2: similarity falls with
// distance, in a convex way).
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// Entry l - 1: the mean cosine of all pairs of rows that are l apart, l = 1 .. min(max_distance, rows - 1). A row of zeros has
/// cosine 0 with every other. n * (n_block + max_distance) inner products in blocks of rows, and one addition on the host for
/// each pair that counts; sums in fp64, in a fixed order.
std::vector<double> similarity_by_distance(const Buffer<const float>& rows, Index max_distance, Backend& backend);

}  // namespace kvbench
