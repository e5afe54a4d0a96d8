// SPDX-License-Identifier: Apache-2.0
// Inner products in tiles of 64 x 64, each one chain over the dimensions in increasing order. A block is 16 x 16
// threads: thread (ty, tx) owns the rows ty, ty + 16, ... and the columns tx, tx + 16, ... of a tile. The best match
// computes the same tiles without storing them.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

constexpr int kSide = 16;
constexpr int kThreads = kSide * kSide;
constexpr int kTile = 64;
constexpr int kPerThread = kTile / kSide;
constexpr int kTileDims = 32;           // dimensions in a tile
constexpr int kStride = kTileDims + 1;  // floats; neighbouring rows lie in different banks

__device__ int thread_column() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ int thread_row() { return static_cast<int>(threadIdx.x) / kSide; }

/// Copies kTile x kTileDims elements from (row, dim) on into shared memory, zeros beyond the matrix.
__device__ void stage(float* tile, const DeviceMatrix<const float>& from, Index row, Index dim) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kTileDims; e += kThreads) {
    const int r = e / kTileDims;
    const int c = e % kTileDims;
    tile[r * kStride + c] = row + r < from.rows && dim + c < from.cols ? from(row + r, dim + c) : 0.0f;
  }
}

/// products[i][j] = <a[row + ty + 16 i], b[column + tx + 16 j]>, 0 beyond the matrices. All threads must call it.
__device__ void product_tile(float (&products)[kPerThread][kPerThread], const DeviceMatrix<const float>& a,
                             const DeviceMatrix<const float>& b, Index row, Index column) {
  __shared__ float a_tile[kTile * kStride];
  __shared__ float b_tile[kTile * kStride];
  for (int i = 0; i < kPerThread; ++i) {
    for (int j = 0; j < kPerThread; ++j) products[i][j] = 0;
  }
  for (Index dim = 0; dim < a.cols; dim += kTileDims) {
    __syncthreads();  // all threads have read the tiles
    stage(a_tile, a, row, dim);
    stage(b_tile, b, column, dim);
    __syncthreads();
    for (int c = 0; c < kTileDims; ++c) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        const float x = a_tile[(thread_row() + i * kSide) * kStride + c];
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          products[i][j] = fmaf(x, b_tile[(thread_column() + j * kSide) * kStride + c], products[i][j]);
        }
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) inner_products(InnerProducts<DeviceMatrix> op) {
  const Index columns = (op.b.rows + kTile - 1) / kTile;
  const Index tiles = (op.a.rows + kTile - 1) / kTile * columns;
  for (Index tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const Index row = tile / columns * kTile;
    const Index column = tile % columns * kTile;
    float products[kPerThread][kPerThread];
    product_tile(products, op.a, op.b, row, column);
    for (int i = 0; i < kPerThread; ++i) {
      for (int j = 0; j < kPerThread; ++j) {
        const Index r = row + thread_row() + i * kSide;
        const Index c = column + thread_column() + j * kSide;
        if (r < op.a.rows && c < op.b.rows) op.out(r, c) = products[i][j];
      }
    }
  }
}

/// A candidate that may be the best: the larger score wins, then the lower index; -1 is worse than any.
struct Choice {
  float score;
  std::int32_t index;
};

__device__ bool beats(Choice a, Choice b) {
  if (a.index < 0 || b.index < 0) return a.index >= 0;
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

/// The candidates of a point; empty beyond the last point.
struct Range {
  Index begin;
  Index end;
};

__device__ Range range_of(const BestMatch<DeviceMatrix>& op, Index point) {
  if (point >= op.points.rows) return {0, 0};
  return {op.first.empty() ? Index{0} : op.first[point], op.last.empty() ? op.candidates.rows : op.last[point]};
}

/// The candidates of any of the kTile points from `point` on. The same in all threads, which must all call it.
__device__ Range range_of_tile(const BestMatch<DeviceMatrix>& op, Index point) {
  __shared__ Range all;
  __syncthreads();  // the previous call's result has been read
  if (threadIdx.x == 0) {
    all = {op.candidates.rows, 0};
    for (Index p = point; p < point + kTile && p < op.points.rows; ++p) {
      const Range own = range_of(op, p);
      if (own.begin >= own.end) continue;
      all = {own.begin < all.begin ? own.begin : all.begin, own.end > all.end ? own.end : all.end};
    }
  }
  __syncthreads();
  return all;
}

/// Compares a thread's 16 products of a tile with the best of its points so far.
__device__ void offer_tile(Choice (&best)[kPerThread], const float (&products)[kPerThread][kPerThread],
                           const BestMatch<DeviceMatrix>& op, Index point, Index candidate) {
  for (int i = 0; i < kPerThread; ++i) {
    const Index p = point + thread_row() + i * kSide;
    const Range own = range_of(op, p);
    for (int j = 0; j < kPerThread; ++j) {
      const Index c = candidate + thread_column() + j * kSide;
      if (c < own.begin || c >= own.end || (op.skip_self && c == p)) continue;
      const Choice offered{products[i][j] + (op.bias.empty() ? 0.0f : op.bias[c]), static_cast<std::int32_t>(c)};
      if (beats(offered, best[i])) best[i] = offered;
    }
  }
}

__global__ void __launch_bounds__(kThreads) best_match(BestMatch<DeviceMatrix> op) {
  for (Index point = Index{blockIdx.x} * kTile; point < op.points.rows; point += Index{gridDim.x} * kTile) {
    const Range all = range_of_tile(op, point);
    Choice best[kPerThread];
    for (Choice& choice : best) choice = {-INFINITY, -1};
    for (Index candidate = all.begin; candidate < all.end; candidate += kTile) {
      float products[kPerThread][kPerThread];
      product_tile(products, op.points, op.candidates, point, candidate);
      offer_tile(best, products, op, point, candidate);
    }
    for (int i = 0; i < kPerThread; ++i) {  // the 16 threads of a row are neighbours in a warp
      for (int offset = kSide / 2; offset > 0; offset /= 2) {
        const Choice other{__shfl_xor_sync(kFullWarp, best[i].score, offset),
                           __shfl_xor_sync(kFullWarp, best[i].index, offset)};
        if (beats(other, best[i])) best[i] = other;
      }
      const Index p = point + thread_row() + i * kSide;
      if (thread_column() != 0 || p >= op.points.rows) continue;
      op.best[p] = best[i].index;
      if (!op.score.empty()) op.score[p] = best[i].score;
    }
  }
}

__global__ void normalize_rows(NormalizeRows<DeviceMatrix> op) {
  for (Index i = first_warp(); i < op.rows.rows; i += warp_stride()) {
    double sum = 0;
    for (Index c = lane_index(); c < op.rows.cols; c += kWarp) {
      const double x = op.rows(i, c);
      sum += x * x;
    }
    const double norm = sqrt(warp_sum(sum));
    for (Index c = lane_index(); c < op.rows.cols; c += kWarp) {
      op.out(i, c) = norm > 0 ? static_cast<float>(op.rows(i, c) / norm) : 0.0f;
    }
  }
}

constexpr int kMeanThreads = 128;

/// One block of threads per label and kMeanThreads columns: it reads the labels kMeanThreads at a time and adds the
/// rows with its label, in increasing order.
__global__ void __launch_bounds__(kMeanThreads) mean_rows(MeanRows<DeviceMatrix> op) {
  __shared__ unsigned found[kMeanThreads / kWarp];
  const Index label = blockIdx.x;
  const Index column = Index{blockIdx.y} * kMeanThreads + threadIdx.x;
  double sum = 0;
  double mass = 0;
  for (Index begin = 0; begin < op.rows.rows; begin += kMeanThreads) {
    const Index mine = begin + threadIdx.x;
    const unsigned hits = __ballot_sync(kFullWarp, mine < op.rows.rows && op.labels[mine] == label);
    __syncthreads();  // all threads have read the previous hits
    if (lane_index() == 0) found[threadIdx.x / kWarp] = hits;
    __syncthreads();
    for (int warp = 0; warp < kMeanThreads / kWarp; ++warp) {
      for (unsigned left = found[warp]; left != 0; left &= left - 1) {
        const Index i = begin + warp * kWarp + __ffs(static_cast<int>(left)) - 1;
        const double weight = op.weights.empty() ? 1.0 : op.weights[i];
        mass += weight;
        if (column < op.rows.cols) sum += weight * op.rows(i, column);
      }
    }
  }
  if (column < op.rows.cols && mass != 0) op.out(label, column) = static_cast<float>(sum / mass);
  if (column == 0) op.mass[label] = static_cast<float>(mass);
}

}  // namespace

template <>
void run(const NormalizeRows<DeviceMatrix>& op, Context& context) {
  launch_warps(context, op.rows.rows, normalize_rows, op);
}

template <>
void run(const InnerProducts<DeviceMatrix>& op, Context& context) {
  const Index tiles = ceil_div(op.a.rows, kTile) * ceil_div(op.b.rows, kTile);
  launch(context, dim3(static_cast<unsigned>(std::min<Index>(tiles, Index{1} << 20))), kThreads, inner_products, op);
}

template <>
void run(const BestMatch<DeviceMatrix>& op, Context& context) {
  const Index tiles = ceil_div(op.points.rows, kTile);
  launch(context, dim3(static_cast<unsigned>(std::min<Index>(tiles, Index{1} << 20))), kThreads, best_match, op);
}

template <>
void run(const MeanRows<DeviceMatrix>& op, Context& context) {
  const Index columns = std::max<Index>(1, ceil_div(op.rows.cols, kMeanThreads));
  launch(context, dim3(static_cast<unsigned>(op.out.rows), static_cast<unsigned>(columns)), kMeanThreads, mean_rows,
         op);
}

}  // namespace kvbench::kernels::cuda
