// SPDX-License-Identifier: Apache-2.0
// One thread per output element; for the norms, one warp per row. Sums in fp64.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

__global__ void gather_rows(GatherRows<DeviceMatrix> op) {
  const Index count = op.out.rows * op.out.cols;
  for (Index e = first_index(); e < count; e += index_stride()) {
    const Index i = e / op.out.cols;
    const Index c = e % op.out.cols;
    op.out(i, c) = op.source(op.ids[i], c);
  }
}

__global__ void squared_norms(SquaredNorms<DeviceMatrix> op) {
  for (Index i = first_warp(); i < op.rows.rows; i += warp_stride()) {
    double sum = 0;
    for (Index c = lane_index(); c < op.rows.cols; c += kWarp) {
      const double x = op.rows(i, c);
      sum += x * x;
    }
    sum = warp_sum(sum);
    if (lane_index() == 0) op.out[i] = sum;
  }
}

/// Items of a row: its rotary_dims / 2 pairs, then its columns beyond rotary_dims.
__global__ void rotate_rows(RotateRows<DeviceMatrix> op) {
  const Index pairs = op.rotary_dims / 2;
  const Index items = op.rows.cols - pairs;
  for (Index e = first_index(); e < op.rows.rows * items; e += index_stride()) {
    const Index i = e / items;
    const Index item = e % items;
    if (item >= pairs) {
      op.out(i, item + pairs) = op.rows(i, item + pairs);
      continue;
    }
    const double power = -2.0 * static_cast<double>(item) / static_cast<double>(op.rotary_dims);
    const double angle = static_cast<double>(op.offsets[i]) * pow(op.theta, power);
    const double cosine = cos(angle);
    const double sine = sin(angle);
    const Index a = op.interleaved ? 2 * item : item;
    const Index b = op.interleaved ? 2 * item + 1 : item + pairs;
    const double x = op.rows(i, a);
    const double y = op.rows(i, b);
    op.out(i, a) = static_cast<float>(x * cosine - y * sine);
    op.out(i, b) = static_cast<float>(x * sine + y * cosine);
  }
}

__global__ void column_sums(ColumnSums<DeviceMatrix> op) {
  const Index n = op.out.cols;
  const Index m = op.scores.rows / op.out.rows;
  for (Index e = first_index(); e < op.out.rows * n; e += index_stride()) {
    const Index g = e / n;
    const Index j = e % n;
    double sum = 0;
    for (Index r = g * m; r < (g + 1) * m; ++r) {
      const float score = op.scores(r, j);
      if (score != -INFINITY) sum += expf(score - op.log_sum_exp[r]);
    }
    op.out(g, j) = static_cast<float>(sum);
  }
}

/// One warp per row.
__global__ void softmax_rows(SoftmaxRows<DeviceMatrix> op) {
  for (Index r = first_warp(); r < op.scores.rows; r += warp_stride()) {
    const float log_sum_exp = op.log_sum_exp[r];
    double sum = 0;
    for (Index j = lane_index(); j < op.scores.cols; j += kWarp) {
      const float p = log_sum_exp == -INFINITY ? 0.0f : expf(op.scores(r, j) - log_sum_exp);
      op.out(r, j) = p;
      sum += static_cast<double>(p) * p;
    }
    sum = warp_sum(sum);
    if (lane_index() == 0) op.norm[r] = static_cast<float>(sqrt(sum));
  }
}

__device__ float pooled(const DeviceMatrix<const float>& rows, Pooling mode, Index kernel, Index r, Index j) {
  if (mode == Pooling::none) return rows(r, j);
  const Index begin = max(j - kernel / 2, Index{0});
  const Index end = min(j + kernel / 2 + 1, rows.cols);
  if (mode == Pooling::max) {
    float highest = -INFINITY;
    for (Index c = begin; c < end; ++c) highest = fmaxf(highest, rows(r, c));
    return highest;
  }
  double sum = 0;
  for (Index c = begin; c < end; ++c) sum += rows(r, c);
  return static_cast<float>(sum / static_cast<double>(kernel));
}

__global__ void pool_rows(PoolRows<DeviceMatrix> op) {
  const Index n = op.rows.cols;
  for (Index e = first_index(); e < op.rows.rows * n; e += index_stride()) {
    op.out(e / n, e % n) = pooled(op.rows, op.mode, op.kernel, e / n, e % n);
  }
}

/// Over rows i, m + i, 2m + i, ...
__device__ float reduced(const DeviceMatrix<const float>& rows, Reduction mode, Index m, Index i, Index j) {
  float highest = -INFINITY;
  double sum = 0;
  for (Index r = i; r < rows.rows; r += m) {
    highest = fmaxf(highest, rows(r, j));
    sum += rows(r, j);
  }
  if (mode == Reduction::max) return highest;
  return static_cast<float>(mode == Reduction::mean ? sum / static_cast<double>(rows.rows / m) : sum);
}

__global__ void reduce_rows(ReduceRows<DeviceMatrix> op) {
  const Index n = op.rows.cols;
  for (Index e = first_index(); e < op.out.rows * n; e += index_stride()) {
    op.out(e / n, e % n) = reduced(op.rows, op.mode, op.out.rows, e / n, e % n);
  }
}

}  // namespace

template <>
void run(const GatherRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.out.rows * op.out.cols, gather_rows, op);
}

template <>
void run(const SquaredNorms<DeviceMatrix>& op, Context& context) {
  launch_warps(context, op.rows.rows, squared_norms, op);
}

template <>
void run(const RotateRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.rows * (op.rows.cols - op.rotary_dims / 2), rotate_rows, op);
}

template <>
void run(const ColumnSums<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.out.rows * op.out.cols, column_sums, op);
}

template <>
void run(const SoftmaxRows<DeviceMatrix>& op, Context& context) {
  launch_warps(context, op.scores.rows, softmax_rows, op);
}

template <>
void run(const PoolRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.rows * op.rows.cols, pool_rows, op);
}

template <>
void run(const ReduceRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.out.rows * op.rows.cols, reduce_rows, op);
}

}  // namespace kvbench::kernels::cuda
