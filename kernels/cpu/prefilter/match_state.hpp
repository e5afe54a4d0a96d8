// SPDX-License-Identifier: Apache-2.0
// What a repeated best match keeps of its points between calls: the points as 8-bit integers (int8_points.hpp).
#pragma once

#include <cstddef>

#include <kvbench/kernels/similarity.hpp>

namespace kvbench::kernels {

/// Views of one block of memory for n points of d columns.
struct MatchState {
  bool usable;                          // false: the points have not been converted, or one of them cannot be used
  float* centre;                        // [d]
  float *scale, *size, *error, *frame;  // [n] of int8_bounds.hpp
  std::uint8_t* rows;                   // [n][pitch]
};

namespace cpu {

/// Rows are padded to whole vectors of the instruction set that reads them.
constexpr Index kMatchStatePitch = 16;

std::size_t match_state_bytes(Index n, Index d);
/// A state that is not usable yet, in `memory` of match_state_bytes(n, d) bytes.
MatchState* place_match_state(void* memory, Index n, Index d);

}  // namespace cpu
}  // namespace kvbench::kernels
