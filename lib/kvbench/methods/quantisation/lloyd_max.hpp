// SPDX-License-Identifier: Apache-2.0
// Codebooks for one coordinate of a rotated unit vector, by Lloyd's and Max's iteration: midpoints between neighbouring
// levels, then each level at the mean of the density between its midpoints.
// Codebooks fitted to numbers by k-means in one dimension.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

struct Codebook {
  std::vector<float> levels;     ///< 2^bits, increasing
  std::vector<float> midpoints;  ///< between neighbours, computed from the levels in fp32
};

/// For a coordinate of a uniformly random unit vector of d >= 2 numbers, whose density is proportional to
/// (1 - x^2)^((d - 3) / 2) (TurboQuant, arXiv 2504.19874, lemma 1). Symmetric. bits: 1 to 4, for which the iteration
/// converges to less than the rounding of fp32.
std::shared_ptr<const Codebook> sphere_codebook(Index d, int bits);

/// As vLLM computes it (quantization/turboquant/centroids.py, solve_lloyd_max): for N(0, 1 / d), from equal steps over
/// +-3.5 standard deviations, at most 200 iterations, trapezoids of 200 steps, tails up to 10.5 standard deviations.
std::shared_ptr<const Codebook> vllm_codebook(Index d, int bits);

/// 2^bits levels. They start at the medians of as many parts of equal count of the sorted numbers, the smaller one of
/// two; then 50 times at most each becomes the mean of the numbers that are nearest to it, those halfway going to the
/// higher level. A level without numbers stays. Means are computed in fp64, in the order of the sorted numbers, so that
/// the order of `numbers` does not matter. Levels are 0 where there are no numbers; none may be NaN.
Codebook fitted_codebook(std::vector<float> numbers, int bits);

}  // namespace kvbench::methods
