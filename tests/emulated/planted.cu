// SPDX-License-Identifier: Apache-2.0
#include "planted.hpp"

#include <cooperative_groups.h>

namespace planted {

__global__ void neighbours(float* out, bool faulty) {
  __shared__ float tile[kThreads];
  const unsigned t = threadIdx.x;
  tile[t] = static_cast<float>(t);
  if (!faulty) __syncthreads();
  out[blockIdx.x * kThreads + t] = tile[(t + 1) % kThreads];
}

__global__ void fill_in_turn(float* out, bool faulty) {
  __shared__ float pair[2];
  const unsigned t = threadIdx.x;
  if (t == 0) pair[0] = 1;
  if (t == 0 && (!faulty || blockIdx.x == 0)) pair[1] = 2;
  __syncthreads();
  out[blockIdx.x * kThreads + t] = pair[t % 2];
}

__global__ void two_barriers(float* out, bool faulty) {
  const unsigned t = threadIdx.x;
  if (faulty && t < kThreads / 2) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[blockIdx.x * kThreads + t] = 1;
}

__global__ void early_leave(float* out, bool faulty) {
  const unsigned t = threadIdx.x;
  out[blockIdx.x * kThreads + t] = 1;
  if (faulty && t == 5) return;
  __syncthreads();
}

__global__ void absent_lanes(float* out, bool faulty) {
  const unsigned t = threadIdx.x;
  if (faulty && t % warpSize >= 16) return;
  out[blockIdx.x * kThreads + t] = static_cast<float>(__shfl_xor_sync(0xffffffffu, t, 1));
}

__global__ void two_masks(float* out, bool faulty) {
  const unsigned t = threadIdx.x;
  const unsigned mask = faulty && t % warpSize == 31 ? 0xfffffffeu : 0xffffffffu;
  out[blockIdx.x * kThreads + t] = static_cast<float>(__ballot_sync(mask, t % 2 == 0) == 0x55555555u);
}

__global__ void write_before(float* out, bool faulty) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = 1;
  if (faulty && t == 0) out[t - 1] = 1;
}

__global__ void count_blocks(float* out, unsigned* counter) {
  __shared__ unsigned number;  // of the block
  if (threadIdx.x == 0) number = blockIdx.x;
  if (threadIdx.x == 0) atomicAdd(counter, 1u);
  cooperative_groups::this_grid().sync();
  out[number * kThreads + threadIdx.x] = static_cast<float>(*counter);
}

}  // namespace planted
