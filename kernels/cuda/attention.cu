// SPDX-License-Identifier: Apache-2.0
// Exact attention in one pass over the keys (online softmax), all in fp32. A block processes 16 * RowsPerThread query
// rows, a share of the keys and up to 128 value columns; a second kernel merges the shares in their order, so results
// do not depend on timing. A block is 16 x 16 threads: thread (ty, tx) owns the rows ty, ty + 16, ..., the keys tx, tx
// + 16, ... of a tile and groups of 4 adjacent value columns.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

using Op = ExactAttention<DeviceMatrix>;

constexpr int kSide = 16;
constexpr int kThreads = kSide * kSide;
constexpr int kTileKeys = 64;
constexpr int kKeysPerThread = kTileKeys / kSide;
constexpr int kTileDims = 64;           // dimensions of queries and keys in a tile
constexpr int kStride = kTileDims + 4;  // floats; rows 16 bytes aligned and 4 banks apart
constexpr int kValueKeys = 32;          // value rows staged at a time
constexpr int kMergeThreads = 128;
// Shares depend on the number of keys alone, so the bits of a query depend neither on other queries nor on the device.
constexpr Index kMinShareTiles = 4;
constexpr Index kMaxShares = 128;
static_assert(kTileDims == kTileKeys, "queries and probabilities share one staging area");

/// Results of the shares: [shares, R], [shares, R], [shares, R, dv] (the last one relative to exp(max)).
struct Parts {
  float* max;
  float* sum;
  float* out;
  Index shares;
  Index keys;  // in a share, a multiple of kTileKeys
};

/// Keys that a query row sees.
struct Range {
  std::int32_t first;
  std::int32_t last;
};

__device__ Range visible(const Op& op, Index r) {
  if (r >= op.queries.rows) return {0, 0};
  const Index i = r % op.first.rows;
  return {op.first[i], op.last[i]};
}

/// Copies Rows x Cols elements from (row, col) on into shared memory, zeros beyond the matrix.
template <int Rows, int Cols>
__device__ void stage(float* tile, int stride, const DeviceMatrix<const float>& from, Index row, Index col) {
  static_assert(kThreads % Cols == 0 && Rows * Cols % kThreads == 0);
  constexpr int kStep = kThreads / Cols;
  constexpr int kCount = Rows / kStep;
  const int c = static_cast<int>(threadIdx.x) % Cols;
  const int r = static_cast<int>(threadIdx.x) / Cols;
  float part[kCount];  // all loads are issued before the first store waits for one
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const Index at = row + r + i * kStep;
    part[i] = at < from.rows && col + c < from.cols ? from(at, col + c) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) tile[(r + i * kStep) * stride + c] = part[i];
}

__device__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

/// The state of a thread's rows: running maximum and sum (the same in the 16 threads of a row), and its part of the
/// output.
template <int Rows, int Groups>
struct State {
  float max[Rows];
  float sum[Rows];
  float out[Rows][4 * Groups];
};

/// dots[a][b] = <query ty + 16 a, key tx + 16 b> of the tile, dimensions in increasing order. All threads must call it.
template <int Rows>
__device__ void tile_dots(float (&dots)[Rows][kKeysPerThread], const Op& op, Index row, Index key, float* q_tile,
                          float* k_tile) {
  const int tx = static_cast<int>(threadIdx.x) % kSide;
  const int ty = static_cast<int>(threadIdx.x) / kSide;
  for (int a = 0; a < Rows; ++a) {
    for (int b = 0; b < kKeysPerThread; ++b) dots[a][b] = 0;
  }
  for (Index dim = 0; dim < op.queries.cols; dim += kTileDims) {
    __syncthreads();  // all threads have read the tiles
    stage<Rows * kSide, kTileDims>(q_tile, kStride, op.queries, row, dim);
    stage<kTileKeys, kTileDims>(k_tile, kStride, op.keys, key, dim);
    __syncthreads();
#pragma unroll 4
    for (int c = 0; c < kTileDims; c += 4) {
      float4 k[kKeysPerThread];
#pragma unroll
      for (int b = 0; b < kKeysPerThread; ++b) k[b] = load4(&k_tile[(tx + b * kSide) * kStride + c]);
#pragma unroll
      for (int a = 0; a < Rows; ++a) {
        const float4 q = load4(&q_tile[(ty + a * kSide) * kStride + c]);
#pragma unroll
        for (int b = 0; b < kKeysPerThread; ++b) {
          float& dot = dots[a][b];
          dot = fmaf(q.x, k[b].x, dot);
          dot = fmaf(q.y, k[b].y, dot);
          dot = fmaf(q.z, k[b].z, dot);
          dot = fmaf(q.w, k[b].w, dot);
        }
      }
    }
  }
}

/// Maximum or sum over the 16 threads of a row, in a fixed order; all of them get it.
template <class Combine>
__device__ float across_row(float value, Combine combine) {
  for (int offset = kSide / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kFullWarp, value, offset));
  }
  return value;
}

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Turns the tile's dots into logits (kept in op.scores unless that is absent), raises the maxima, rescales the state
/// to them and writes exp(logit - max) to p_tile, 0 where masked.
template <int Rows, int Groups>
__device__ void tile_softmax(float (&dots)[Rows][kKeysPerThread], State<Rows, Groups>& state,
                             const Range (&ranges)[Rows], const Op& op, Index row, Index key, float* p_tile) {
  const int tx = static_cast<int>(threadIdx.x) % kSide;
  const int ty = static_cast<int>(threadIdx.x) / kSide;
  const bool keep_scores = !op.scores.empty() && blockIdx.z == 0;
#pragma unroll
  for (int a = 0; a < Rows; ++a) {
    float highest = -INFINITY;
#pragma unroll
    for (int b = 0; b < kKeysPerThread; ++b) {
      const int j = static_cast<int>(key) + tx + b * kSide;
      const bool seen = ranges[a].first <= j && j < ranges[a].last;
      dots[a][b] = seen ? __fmul_rn(op.scale, dots[a][b]) : -INFINITY;  // never fused into what follows
      if (seen && keep_scores) op.scores(row + ty + a * kSide, j) = dots[a][b];
      highest = fmaxf(highest, dots[a][b]);
    }
    const float max = fmaxf(state.max[a], across_row(highest, Larger{}));
    const float rescale = state.max[a] == -INFINITY ? 0.0f : expf(state.max[a] - max);
    float sum = 0;
#pragma unroll
    for (int b = 0; b < kKeysPerThread; ++b) {
      const float p = dots[a][b] == -INFINITY ? 0.0f : expf(dots[a][b] - max);
      p_tile[(ty + a * kSide) * kStride + tx + b * kSide] = p;
      sum += p;
    }
    state.max[a] = max;
    state.sum[a] = fmaf(state.sum[a], rescale, across_row(sum, Plus{}));
#pragma unroll
    for (int c = 0; c < 4 * Groups; ++c) state.out[a][c] *= rescale;
  }
}

/// Adds the tile's probabilities times its values, keys in increasing order. All threads must call it.
template <int Rows, int Groups>
__device__ void tile_values(State<Rows, Groups>& state, const Op& op, Index key, Index column, const float* p_tile,
                            float* v_tile) {
  constexpr int kColumns = 4 * kSide * Groups;
  const int tx = static_cast<int>(threadIdx.x) % kSide;
  const int ty = static_cast<int>(threadIdx.x) / kSide;
  for (int part = 0; part < kTileKeys; part += kValueKeys) {
    __syncthreads();  // p_tile is complete, and all threads have read v_tile
    stage<kValueKeys, kColumns>(v_tile, kColumns, op.values, key + part, column);
    __syncthreads();
#pragma unroll 2
    for (int j = 0; j < kValueKeys; j += 4) {
      float4 p[Rows];
#pragma unroll
      for (int a = 0; a < Rows; ++a) p[a] = load4(&p_tile[(ty + a * kSide) * kStride + part + j]);
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
        float4 v[4];
#pragma unroll
        for (int s = 0; s < 4; ++s) v[s] = load4(&v_tile[(j + s) * kColumns + 4 * (tx + g * kSide)]);
#pragma unroll
        for (int a = 0; a < Rows; ++a) {
          const float weights[4] = {p[a].x, p[a].y, p[a].z, p[a].w};
          float* out = &state.out[a][4 * g];
#pragma unroll
          for (int s = 0; s < 4; ++s) {
            out[0] = fmaf(weights[s], v[s].x, out[0]);
            out[1] = fmaf(weights[s], v[s].y, out[1]);
            out[2] = fmaf(weights[s], v[s].z, out[2]);
            out[3] = fmaf(weights[s], v[s].w, out[3]);
          }
        }
      }
    }
  }
}

template <int Rows, int Groups>
__device__ void write_parts(const State<Rows, Groups>& state, const Op& op, Index row, Index column,
                            const Parts& parts) {
  const int tx = static_cast<int>(threadIdx.x) % kSide;
  const int ty = static_cast<int>(threadIdx.x) / kSide;
#pragma unroll
  for (int a = 0; a < Rows; ++a) {
    const Index r = row + ty + a * kSide;
    if (r >= op.queries.rows) continue;
    const Index part = Index{blockIdx.y} * op.queries.rows + r;
    if (tx == 0 && blockIdx.z == 0) {
      parts.max[part] = state.max[a];
      parts.sum[part] = state.sum[a];
    }
#pragma unroll
    for (int c = 0; c < 4 * Groups; ++c) {
      const Index at = column + 4 * (tx + c / 4 * kSide) + c % 4;
      if (at < op.out.cols) parts.out[part * op.out.cols + at] = state.out[a][c];
    }
  }
}

/// Block (x, y, z): query rows [16 Rows x, ...), share y of the keys, value columns [64 Groups z, ...).
template <int Rows, int Groups>
__global__ void __launch_bounds__(kThreads, 2) attend(Op op, Parts parts) {
  constexpr int kColumns = 4 * kSide * Groups;
  constexpr int kKeyTile = kTileKeys * kStride;
  constexpr int kValueTile = kValueKeys * kColumns;
  alignas(16) __shared__ float qp_tile[Rows * kSide * kStride];                         // queries, then probabilities
  alignas(16) __shared__ float kv_tile[kKeyTile > kValueTile ? kKeyTile : kValueTile];  // keys, then values
  const int ty = static_cast<int>(threadIdx.x) / kSide;
  const Index row = Index{blockIdx.x} * (Rows * kSide);
  const Index column = Index{blockIdx.z} * kColumns;

  Range ranges[Rows];
  State<Rows, Groups> state;
#pragma unroll
  for (int a = 0; a < Rows; ++a) {
    ranges[a] = visible(op, row + ty + a * kSide);
    state.max[a] = -INFINITY;
    state.sum[a] = 0;
    for (int c = 0; c < 4 * Groups; ++c) state.out[a][c] = 0;
  }
  const Index begin = Index{blockIdx.y} * parts.keys;
  const Index end = min(begin + parts.keys, op.keys.rows);
  for (Index key = begin; key < end; key += kTileKeys) {
    bool seen = false;
#pragma unroll
    for (int a = 0; a < Rows; ++a) {
      seen |= max(Index{ranges[a].first}, key) < min(Index{ranges[a].last}, key + kTileKeys);
    }
    if (__syncthreads_or(seen) == 0) continue;  // masked for all rows of the block
    float dots[Rows][kKeysPerThread];
    tile_dots<Rows>(dots, op, row, key, qp_tile, kv_tile);
    __syncthreads();  // all threads have read the queries: probabilities replace them
    tile_softmax<Rows, Groups>(dots, state, ranges, op, row, key, qp_tile);
    tile_values<Rows, Groups>(state, op, key, column, qp_tile, kv_tile);
  }
  write_parts<Rows, Groups>(state, op, row, column, parts);
}

/// One block per row. out = sum_s exp(max_s - max) out_s / sum_s exp(max_s - max) sum_s.
__global__ void __launch_bounds__(kMergeThreads) merge(Op op, Parts parts) {
  const Index rows = op.queries.rows;
  const Index r = blockIdx.x;
  float max = -INFINITY;
  for (Index s = 0; s < parts.shares; ++s) max = fmaxf(max, parts.max[s * rows + r]);
  float sum = 0;
  for (Index s = 0; s < parts.shares; ++s) {
    if (parts.max[s * rows + r] != -INFINITY) sum += expf(parts.max[s * rows + r] - max) * parts.sum[s * rows + r];
  }
  for (Index c = threadIdx.x; c < op.out.cols; c += kMergeThreads) {
    float out = 0;
    for (Index s = 0; s < parts.shares; ++s) {
      const Index part = s * rows + r;
      if (parts.max[part] != -INFINITY) out += expf(parts.max[part] - max) * parts.out[part * op.out.cols + c];
    }
    op.out(r, c) = max == -INFINITY ? 0.0f : out / sum;
  }
  if (threadIdx.x != 0) return;
  op.max[r] = max;
  op.log_sum_exp[r] = max == -INFINITY ? -INFINITY : max + logf(sum);
}

/// Masked logits; `attend` writes only those that are seen.
__global__ void mask_scores(DeviceMatrix<float> scores) {
  for (Index e = first_index(); e < scores.rows * scores.cols; e += index_stride()) {
    scores(e / scores.cols, e % scores.cols) = -INFINITY;
  }
}

template <int Rows, int Groups>
void run_with(const Op& op, Context& context) {
  const Index rows = op.queries.rows;
  const Index dv = op.out.cols;
  const Index row_blocks = ceil_div(rows, Rows * kSide);
  const Index column_blocks = std::max<Index>(1, ceil_div(dv, 4 * kSide * Groups));
  const Index tiles = ceil_div(op.keys.rows, kTileKeys);
  const Index share_tiles = std::max(kMinShareTiles, ceil_div(tiles, kMaxShares));
  const Index shares = ceil_div(tiles, share_tiles);
  const Index count = shares * rows;
  float* scratch = context.workspace<float>(static_cast<std::size_t>(count * (2 + dv)));
  const Parts parts{scratch, scratch + count, scratch + 2 * count, shares, share_tiles * kTileKeys};
  if (!op.scores.empty()) launch_items(context, op.scores.rows * op.scores.cols, mask_scores, op.scores);
  const dim3 grid(static_cast<unsigned>(row_blocks), static_cast<unsigned>(shares),
                  static_cast<unsigned>(column_blocks));
  launch(context, grid, kThreads, attend<Rows, Groups>, op, parts);
  launch(context, dim3(static_cast<unsigned>(rows)), kMergeThreads, merge, op, parts);
}

}  // namespace

template <>
void run(const ExactAttention<DeviceMatrix>& op, Context& context) {
  if (op.queries.rows == 0) return;
  const bool few_rows = op.queries.rows <= kSide;
  const bool narrow = op.out.cols <= 4 * kSide;
  if (few_rows && narrow) run_with<1, 1>(op, context);
  if (few_rows && !narrow) run_with<1, 2>(op, context);
  if (!few_rows && narrow) run_with<4, 1>(op, context);
  if (!few_rows && !narrow) run_with<4, 2>(op, context);
}

}  // namespace kvbench::kernels::cuda
