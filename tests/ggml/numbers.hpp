// SPDX-License-Identifier: Apache-2.0
// Blocks of 32 numbers on which two implementations of a format can differ.
#pragma once

#include <vector>

namespace kvbench::testing {

/// [blocks, 32], finite, an even number of blocks: random numbers of all sizes, ties, zeros of both signs, constants,
/// one huge number among small ones, subnormals, scales beyond the range of f16.
std::vector<float> hostile_blocks();

}  // namespace kvbench::testing
