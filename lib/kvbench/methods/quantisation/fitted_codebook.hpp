// SPDX-License-Identifier: Apache-2.0
// Codebooks fitted to numbers by k-means in one dimension.
#pragma once

#include <kvbench/methods/quantisation/lloyd_max.hpp>

namespace kvbench::methods {

/// 2^bits levels. They start at the medians of as many parts of equal count of the sorted numbers, the smaller one of
/// two; then 50 times at most each becomes the mean of the numbers that are nearest to it, those halfway going to the
/// higher level. A level without numbers stays. Means are computed in fp64, in the order of the sorted numbers, so that
/// the order of `numbers` does not matter. Levels are 0 where there are no numbers; none may be NaN.
Codebook fitted_codebook(std::vector<float> numbers, int bits);

}  // namespace kvbench::methods
