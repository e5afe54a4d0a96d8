// SPDX-License-Identifier: Apache-2.0
// What the current GPU can do at this moment: fused multiply-adds on registers, and reading memory far larger than any
// cache.
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "probes.hpp"

namespace kvbench::bench {

namespace {

constexpr int kThreads = 256;
constexpr int kChains = 8;
constexpr int kSteps = 4096;
constexpr int kRepeats = 5;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA probe failed: ") + cudaGetErrorString(status));
}

__global__ void __launch_bounds__(kThreads) multiply_add(float* sink) {
  float x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(threadIdx.x + c);
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], 0.999f, 1e-3f);
  }
  float total = 0;
  for (int c = 0; c < kChains; ++c) total += x[c];
  if (total == -1) *sink = total;  // never: keeps the chains alive
}

__global__ void __launch_bounds__(kThreads) read_all(const float4* data, std::size_t count, float* sink) {
  float total = 0;
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  for (std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const float4 x = data[i];
    total += x.x + x.y + x.z + x.w;
  }
  if (total == -1) *sink = total;
}

/// Best of kRepeats, by the device's clock.
template <class Launch>
double best_seconds(Launch launch) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&end));
  float best = 1e30f;
  for (int i = 0; i <= kRepeats; ++i) {  // the first one warms up
    check(cudaEventRecord(start));
    launch();
    check(cudaGetLastError());
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, end));
    if (i > 0) best = std::min(best, milliseconds);
  }
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(end));
  return 1e-3 * static_cast<double>(best);
}

int multiprocessors() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

}  // namespace

Ceilings probe_device() {
  constexpr std::size_t bytes = std::size_t{1} << 30;
  const int blocks = 32 * multiprocessors();
  float4* data = nullptr;
  check(cudaMalloc(&data, bytes));
  check(cudaMemset(data, 0, bytes));
  auto* sink = reinterpret_cast<float*>(data);
  const double flops = 2.0 * kChains * kSteps * kThreads * blocks;
  const double compute = best_seconds([&] { multiply_add<<<blocks, kThreads>>>(sink); });
  const double read = best_seconds([&] { read_all<<<blocks, kThreads>>>(data, bytes / sizeof(float4), sink); });
  check(cudaFree(data));
  return {flops / compute, static_cast<double>(bytes) / read};
}

}  // namespace kvbench::bench
