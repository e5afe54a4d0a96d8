// SPDX-License-Identifier: Apache-2.0
// A block of threads walks one block of tokens, row by row: each warp processes every kWarps-th of the rows before it
// and adds one term at a time to its share of the sum, in fp64; the shares of the warps are added in their order.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

using Walk = BalanceWalk<DeviceMatrix>;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarp;

/// The vector subtracted from the keys of block b, [d]; zeros where the walk is not centred. All threads must call it.
__device__ void form_centre(const Walk& op, Index b, double* centre) {
  for (Index c = threadIdx.x; c < op.keys.cols; c += kThreads) {
    double sum = 0;
    for (Index i = op.starts[b]; op.centre > 0 && i < op.starts[b + 1]; ++i) {
      sum += static_cast<double>(op.keys(i, c)) / static_cast<double>(op.centre);
    }
    centre[c] = sum;
  }
  __syncthreads();
}

/// K(i, j), in all lanes. All lanes of the warp must call it.
__device__ double kernel(const Walk& op, const double* centre, Index b, Index i, Index j) {
  double logit = 0;
  for (Index c = lane_index(); c < op.keys.cols; c += kWarp) {
    logit += (op.keys(i, c) - centre[c]) * (op.keys(j, c) - centre[c]);
  }
  const double weight = exp(static_cast<double>(op.scale) * warp_sum(logit) - static_cast<double>(op.shift[b]));
  if (op.values.empty()) return weight;
  double factor = 0;
  for (Index c = lane_index(); c < op.values.cols; c += kWarp) {
    factor += static_cast<double>(op.values(i, c)) * static_cast<double>(op.values(j, c));
  }
  factor = warp_sum(factor);
  if (!op.weights.empty()) factor *= static_cast<double>(op.weights[i]) * static_cast<double>(op.weights[j]);
  return weight * (factor + static_cast<double>(op.value_offset));
}

/// The sum of the warps' shares, in all threads. All threads of the block must call it.
__device__ double block_sum(double share) {
  __shared__ double shares[kWarps];
  __syncthreads();  // the previous call's shares have been read
  if (lane_index() == 0) shares[threadIdx.x / kWarp] = share;
  __syncthreads();
  double sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += shares[warp];
  return sum;
}

__device__ std::int32_t draw(const Walk& op, Index b, Index i, double sum) {
  if (op.first_positive && i == op.starts[b]) return 1;
  if (op.greedy) return sum > 0 ? -1 : 1;
  return op.uniforms[i] < 0.5 - static_cast<double>(op.step[b]) * sum ? 1 : -1;
}

/// Thread 0 writes the signs; the others read them in the next rows.
__global__ void __launch_bounds__(kThreads) balance_walk(Walk op, double* centres) {
  const Index b = blockIdx.x;
  const Index begin = op.starts[b];
  const Index end = op.starts[b + 1];
  double* centre = centres + b * op.keys.cols;
  form_centre(op, b, centre);
  std::int32_t fails = 0;
  for (Index i = begin; i < end; i += op.pairs ? 2 : 1) {
    const bool pair = op.pairs && i + 1 < end;
    double share = 0;
    for (Index j = begin + threadIdx.x / kWarp; j < i; j += kWarps) {
      const double term = kernel(op, centre, b, i, j) - (pair ? kernel(op, centre, b, i + 1, j) : 0.0);
      share += op.signs[j] * term;
    }
    const double sum = block_sum(share);
    if (threadIdx.x == 0) {
      if (!op.greedy && fabs(static_cast<double>(op.step[b]) * sum) > 0.5) ++fails;
      op.signs[i] = draw(op, b, i, sum);
      if (pair) op.signs[i + 1] = -op.signs[i];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) op.fails[b] = fails;
}

}  // namespace

template <>
void run(const Walk& op, Context& context) {
  auto* centres = context.workspace<double>(static_cast<std::size_t>(op.shift.rows * op.keys.cols));
  launch(context, dim3(static_cast<unsigned>(op.shift.rows)), kThreads, balance_walk, op, centres);
}

}  // namespace kvbench::kernels::cuda
