// SPDX-License-Identifier: Apache-2.0
// Launching kernels, and the few device-side helpers that several of them share.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include <kvbench/kernels/view.hpp>

#include "check.hpp"
#include "context.hpp"

namespace kvbench::kernels::cuda {

constexpr int kWarp = 32;
constexpr unsigned kFullWarp = 0xffffffffu;

inline Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

/// Queues kernel<<<grid, threads>>>(args...); an empty grid queues nothing.
template <class... Parameters, class... Arguments>
void launch(const Context& context, dim3 grid, int threads, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = context.stream();
  KVBENCH_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// One thread per item, for kernels that walk their items with first_index() and index_stride().
template <class... Parameters, class... Arguments>
void launch_items(const Context& context, Index items, void (*kernel)(Parameters...), Arguments... arguments) {
  constexpr int kThreads = 256;
  const Index blocks = std::min<Index>(ceil_div(items, kThreads), Index{1} << 20);
  launch(context, dim3(static_cast<unsigned>(blocks)), kThreads, kernel, arguments...);
}

/// One warp per item, for kernels that walk their items with first_warp() and warp_stride().
template <class... Parameters, class... Arguments>
void launch_warps(const Context& context, Index items, void (*kernel)(Parameters...), Arguments... arguments) {
  constexpr int kThreads = 256;
  const Index blocks = std::min<Index>(ceil_div(items, kThreads / kWarp), Index{1} << 20);
  launch(context, dim3(static_cast<unsigned>(blocks)), kThreads, kernel, arguments...);
}

/// Blocks of a cooperative launch with one warp per item: no more than the device holds at once.
template <class... Parameters>
int cooperative_blocks(const Context& context, Index items, int threads, void (*kernel)(Parameters...)) {
  int per_multiprocessor = 0;
  KVBENCH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, threads, 0));
  const Index resident = Index{per_multiprocessor} * context.multiprocessors();
  return static_cast<int>(std::max<Index>(1, std::min(resident, ceil_div(items, threads / kWarp))));
}

/// Queues a kernel whose blocks synchronise through cooperative_groups::this_grid().
template <class... Parameters, class... Arguments>
void launch_cooperative(const Context& context, int blocks, int threads, void (*kernel)(Parameters...),
                        Arguments... arguments) {
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = context.stream();
  config.attrs = &cooperative;
  config.numAttrs = 1;
  KVBENCH_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

__device__ inline Index first_index() { return Index{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline Index index_stride() { return Index{gridDim.x} * blockDim.x; }
__device__ inline Index first_warp() { return first_index() / kWarp; }
__device__ inline Index warp_stride() { return index_stride() / kWarp; }
__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }

/// Sum over the warp in a fixed order; the result is in all lanes, which must all call it.
template <class T>
__device__ T warp_sum(T value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kFullWarp, value, offset);
  return value;
}

}  // namespace kvbench::kernels::cuda
