// SPDX-License-Identifier: Apache-2.0
// Kernels with one fault each, which `faulty` switches on. They write to out[0 .. blocks * threads - 1] unless stated
// otherwise.
#pragma once

#include <cuda_runtime.h>

namespace planted {

constexpr int kThreads = 64;

/// out[t] = t + 1 modulo kThreads, through shared memory; faulty: without a barrier between write and read.
__global__ void neighbours(float* out, bool faulty);
/// 1 and 2 in turn; faulty: all blocks but the first do not write the 2.
__global__ void fill_in_turn(float* out, bool faulty);
/// Faulty: half of the threads wait at another barrier.
__global__ void two_barriers(float* out, bool faulty);
/// Faulty: one thread leaves before the barrier.
__global__ void early_leave(float* out, bool faulty);
/// Pairs of lanes exchange their numbers; faulty: the upper half of each warp has left, and is named in the mask.
__global__ void absent_lanes(float* out, bool faulty);
/// Faulty: lanes of a warp call with different masks.
__global__ void two_masks(float* out, bool faulty);
/// Faulty: also writes out[-1].
__global__ void write_before(float* out, bool faulty);
/// out[t] = number of blocks that reached the grid synchronisation before any passed it; counter[0] = 0 before.
__global__ void count_blocks(float* out, unsigned* counter);

}  // namespace planted
