// SPDX-License-Identifier: Apache-2.0
// Four kernels: logits of all slots; the new maximum of each row; sums over a share of a row's slots; their merge into
// the state in the order of the shares.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

using Op = WeightedAttention<DeviceMatrix>;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kColumns = 4;                         // value columns per thread
constexpr int kBlockColumns = kColumns * kThreads;  // value columns per block
constexpr Index kMinShare = 256;  // slots; shares depend on the width of the table alone, and so do the bits of a row
constexpr Index kMaxShares = 64;

__device__ Index table_row(const Op& op, Index r) {
  const Index m = op.first.rows;
  return (op.per_head ? r / m : 0) * (op.per_query ? m : 1) + (op.per_query ? r % m : 0);
}

__device__ bool usable(const Op& op, Index r, Index row, Index slot) {
  const std::int32_t id = op.ids(row, slot);
  const Index i = r % op.first.rows;
  return id >= 0 && op.first[i] <= id && id < op.last[i];
}

/// One thread per slot: the exact pass has kept the logits.
__global__ void look_up_logits(Op op, DeviceMatrix<float> logits) {
  const Index width = op.ids.cols;
  for (Index e = first_index(); e < logits.rows * width; e += index_stride()) {
    const Index r = e / width;
    const Index row = table_row(op, r);
    logits(r, e % width) = usable(op, r, row, e % width) ? op.scores(r, op.ids(row, e % width)) : -INFINITY;
  }
}

/// One warp per slot.
__global__ void compute_logits(Op op, DeviceMatrix<float> logits) {
  const Index width = op.ids.cols;
  for (Index e = first_warp(); e < logits.rows * width; e += warp_stride()) {
    const Index r = e / width;
    const Index slot = e % width;
    const Index row = table_row(op, r);
    const std::int32_t id = op.ids(row, slot);
    float logit = -INFINITY;
    if (usable(op, r, row, slot)) {  // the same for all lanes
      const float* key = op.own_keys.empty() ? op.keys.row(id) : op.own_keys.row(row * width + slot);
      const float* query = op.queries.row(r);
      float sum = 0;
      for (Index c = lane_index(); c < op.queries.cols; c += kWarp) sum = fmaf(query[c], key[c], sum);
      logit = op.scale * warp_sum(sum);
    }
    if (lane_index() == 0) logits(r, slot) = logit;
  }
}

/// One block per row: raises op.max and keeps its old value.
__global__ void __launch_bounds__(kThreads) raise_maximum(Op op, DeviceMatrix<float> logits, float* old_max) {
  __shared__ float warp_maxima[kWarps];
  const Index r = blockIdx.x;
  float highest = -INFINITY;
  for (Index slot = threadIdx.x; slot < logits.cols; slot += kThreads) highest = fmaxf(highest, logits(r, slot));
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    highest = fmaxf(highest, __shfl_xor_sync(kFullWarp, highest, offset));
  }
  if (lane_index() == 0) warp_maxima[threadIdx.x / kWarp] = highest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, warp_maxima[w]);
  old_max[r] = op.max[r];
  op.max[r] = fmaxf(highest, op.max[r]);
}

/// Partial sums, [R, shares] and [R, shares, dv].
struct Parts {
  float* den;
  float* num;
  Index shares;
  Index slots;  // in a share
};

/// Block (r, share, z): the share's den, and its num in columns [z * kBlockColumns, ...). The weights of a tile of
/// kThreads slots are computed by one thread per slot, then its values are summed by one thread per column, in the
/// order of the slots.
__global__ void __launch_bounds__(kThreads) sum_share(Op op, DeviceMatrix<float> logits, Parts parts) {
  __shared__ float tile_weights[kThreads];
  __shared__ const float* tile_values[kThreads];
  __shared__ float warp_dens[kWarps];
  const int t = static_cast<int>(threadIdx.x);
  const Index r = blockIdx.x;
  const Index row = table_row(op, r);
  const Index part = r * parts.shares + blockIdx.y;
  const Index begin = blockIdx.y * parts.slots;
  const Index end = min(begin + parts.slots, op.ids.cols);
  const Index column = Index{blockIdx.z} * kBlockColumns + t;
  const Index dv = op.num.cols;
  float den = 0;
  float num[kColumns] = {};
  for (Index tile = begin; tile < end; tile += kThreads) {
    const Index slot = tile + t;
    const float logit = slot < end ? logits(r, slot) : -INFINITY;
    __syncthreads();  // the previous tile has been summed
    tile_values[t] = nullptr;
    if (logit != -INFINITY) {
      const float e = expf(logit - op.max[r]);
      tile_weights[t] = (op.weight_num.empty() ? 1.0f : op.weight_num(row, slot)) * e;
      tile_values[t] =
          op.own_values.empty() ? op.values.row(op.ids(row, slot)) : op.own_values.row(row * op.ids.cols + slot);
      den += (op.weight_den.empty() ? 1.0f : op.weight_den(row, slot)) * e;
    }
    __syncthreads();
    const int filled = static_cast<int>(min(Index{kThreads}, end - tile));
    for (int s = 0; s < filled; ++s) {
      if (tile_values[s] == nullptr) continue;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const Index c = column + j * kThreads;
        if (c < dv) num[j] += tile_weights[s] * tile_values[s][c];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const Index c = column + j * kThreads;
    if (c < dv) parts.num[part * dv + c] = num[j];
  }
  den = warp_sum(den);
  if (lane_index() == 0) warp_dens[t / kWarp] = den;
  __syncthreads();
  if (t != 0 || blockIdx.z != 0) return;
  den = 0;
  for (int w = 0; w < kWarps; ++w) den += warp_dens[w];
  parts.den[part] = den;
}

/// One block per row: the state, rescaled to the new maximum, plus all shares.
__global__ void __launch_bounds__(kThreads) merge_shares(Op op, const float* old_max, Parts parts) {
  const Index r = blockIdx.x;
  const Index dv = op.num.cols;
  const float scale = old_max[r] == -INFINITY ? 0.0f : expf(old_max[r] - op.max[r]);
  for (Index c = threadIdx.x; c < dv; c += kThreads) {
    float num = scale * op.num(r, c);
    for (Index s = 0; s < parts.shares; ++s) num += parts.num[(r * parts.shares + s) * dv + c];
    op.num(r, c) = num;
  }
  if (threadIdx.x != 0) return;
  float den = scale * op.den[r];
  for (Index s = 0; s < parts.shares; ++s) den += parts.den[r * parts.shares + s];
  op.den[r] = den;
}

}  // namespace

template <>
void run(const WeightedAttention<DeviceMatrix>& op, Context& context) {
  if (op.queries.rows == 0 || op.ids.cols == 0) return;
  const Index rows = op.queries.rows;
  const Index width = op.ids.cols;
  const Index dv = op.num.cols;
  const Index slots = std::max(kMinShare, ceil_div(width, kMaxShares));
  const Index shares = ceil_div(width, slots);

  const Index floats = rows + (op.logits.empty() ? rows * width : 0);
  float* scratch = context.workspace<float>(static_cast<std::size_t>(rows * shares * (1 + dv) + floats));
  const Parts parts{scratch, scratch + rows * shares, shares, slots};
  float* old_max = scratch + rows * shares * (1 + dv);
  const DeviceMatrix<float> logits =
      op.logits.empty() ? DeviceMatrix<float>(old_max + rows, rows, width, width) : op.logits;

  if (op.scores.empty() || !op.own_keys.empty()) {
    launch_warps(context, rows * width, compute_logits, op, logits);
  } else {
    launch_items(context, rows * width, look_up_logits, op, logits);
  }
  const dim3 row_blocks(static_cast<unsigned>(rows));
  launch(context, row_blocks, kThreads, raise_maximum, op, logits, old_max);
  const Index column_blocks = std::max<Index>(1, ceil_div(dv, kBlockColumns));  // dv = 0 still has a den
  const dim3 share_blocks(static_cast<unsigned>(rows), static_cast<unsigned>(shares),
                          static_cast<unsigned>(column_blocks));
  launch(context, share_blocks, kThreads, sum_share, op, logits, parts);
  launch(context, row_blocks, kThreads, merge_shares, op, static_cast<const float*>(old_max), parts);
}

}  // namespace kvbench::kernels::cuda
