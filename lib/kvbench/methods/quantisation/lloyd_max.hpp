// SPDX-License-Identifier: Apache-2.0
// Codebooks for one coordinate of a rotated unit vector, by Lloyd's and Max's iteration: midpoints between neighbouring
// levels, then each level at the mean of the density between its midpoints.
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

}  // namespace kvbench::methods
