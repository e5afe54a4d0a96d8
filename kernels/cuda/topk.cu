// SPDX-License-Identifier: Apache-2.0
// One block per row: three radix passes find the k-th largest score, one ordered pass writes the columns above it.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBins = 2 * kThreads;  // 11 bits per pass: 11 + 11 + 10

/// Unsigned integers that compare as the scores do; -0 and +0 are the same score.
__device__ unsigned sort_key(float score) {
  const unsigned bits = __float_as_uint(score == 0.0f ? 0.0f : score);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// Sum of `value` over the threads before this one. All threads of the block must call it.
__device__ unsigned block_exclusive_sum(unsigned value, unsigned& total) {
  __shared__ unsigned warp_totals[kWarps];
  const int lane = lane_index();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  unsigned inclusive = value;
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const unsigned below = __shfl_up_sync(kFullWarp, inclusive, static_cast<unsigned>(offset));
    if (lane >= offset) inclusive += below;
  }
  __syncthreads();  // all threads have read the previous call's totals
  if (lane == kWarp - 1) warp_totals[warp] = inclusive;
  __syncthreads();
  unsigned before = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += warp_totals[w];
    total += warp_totals[w];
  }
  return before + inclusive - value;
}

/// The scores of one row; those in columns [begin, end) compete.
struct Competitors {
  const float* scores;
  Index begin, end;

  __device__ unsigned key(Index column) const { return sort_key(scores[column]); }
};

/// The `wanted`-th largest key (1-based) of the competitors; `wanted` becomes the number of keys equal to it that
/// belong to the largest ones. 1 <= wanted <= number of competitors.
__device__ unsigned kth_largest_key(const Competitors& row, unsigned& wanted) {
  __shared__ unsigned histogram[kBins];
  __shared__ unsigned chosen_bin;
  __shared__ unsigned chosen_rest;
  const int t = static_cast<int>(threadIdx.x);
  unsigned key = 0;
  unsigned known = 0;  // mask of the bits of `key` that are settled
  for (int shift = 21; shift >= 0; shift -= shift == 21 ? 11 : 10) {
    const unsigned digits = shift == 0 ? 1023u : 2047u;
    for (int bin = t; bin < kBins; bin += kThreads) histogram[bin] = 0;
    __syncthreads();
    for (Index column = row.begin + t; column < row.end; column += kThreads) {
      const unsigned candidate = row.key(column);
      if ((candidate & known) == key) atomicAdd(&histogram[candidate >> shift & digits], 1u);
    }
    __syncthreads();
    const int high = kBins - 1 - 2 * t;  // two bins per thread, from the top down
    const unsigned in_high = histogram[high];
    const unsigned in_low = histogram[high - 1];
    unsigned total = 0;
    const unsigned above = block_exclusive_sum(in_high + in_low, total);
    if (above < wanted && wanted <= above + in_high + in_low) {
      const bool is_high = wanted <= above + in_high;
      chosen_bin = static_cast<unsigned>(is_high ? high : high - 1);
      chosen_rest = wanted - above - (is_high ? 0u : in_high);
    }
    __syncthreads();
    key |= chosen_bin << shift;
    known |= digits << shift;
    wanted = chosen_rest;
  }
  return key;
}

__global__ void __launch_bounds__(kThreads) top_k(TopK<DeviceMatrix> op) {
  const Index r = blockIdx.x;
  const Competitors row = {op.scores.row(r), op.first[r], op.last[r]};
  std::int32_t* ids = op.ids.row(r);
  const Index k = op.ids.cols;
  const Index chosen = min(k, max(Index{0}, row.end - row.begin));
  for (Index slot = chosen + threadIdx.x; slot < k; slot += kThreads) ids[slot] = -1;
  if (chosen == 0) return;  // the same for all threads of the block

  unsigned equal_wanted = static_cast<unsigned>(chosen);
  const unsigned threshold = kth_largest_key(row, equal_wanted);
  unsigned greater_before = 0;
  unsigned equal_before = 0;
  for (Index base = row.begin; base < row.end; base += kThreads) {
    const Index column = base + threadIdx.x;
    const bool competes = column < row.end;
    const unsigned key = competes ? row.key(column) : 0;
    const bool greater = competes && key > threshold;
    const bool equal = competes && key == threshold;
    unsigned totals = 0;  // both counts fit: at most kThreads = 1024 each
    const unsigned packed = block_exclusive_sum((greater ? 0x10000u : 0u) | (equal ? 1u : 0u), totals);
    const unsigned greater_rank = greater_before + (packed >> 16);
    const unsigned equal_rank = equal_before + (packed & 0xffffu);
    if (greater || (equal && equal_rank < equal_wanted))
      ids[greater_rank + min(equal_rank, equal_wanted)] = static_cast<std::int32_t>(column);
    greater_before += totals >> 16;
    equal_before += totals & 0xffffu;
  }
}

}  // namespace

template <>
void run(const TopK<DeviceMatrix>& op, Context& context) {
  if (op.ids.cols == 0) return;
  launch(context, dim3(static_cast<unsigned>(op.ids.rows)), kThreads, top_k, op);
}

}  // namespace kvbench::kernels::cuda
