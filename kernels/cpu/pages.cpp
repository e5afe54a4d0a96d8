// SPDX-License-Identifier: Apache-2.0
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

inline Vec min(Vec a, Vec b) { return b < a ? b : a; }

/// Bounds of columns [column, column + Vectors * W) over `count` rows.
template <int Vectors>
inline void bound_columns(const float* rows, Index stride, Index count, Index column, float* highest, float* lowest) {
  Vec high[Vectors], low[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) high[v] = low[v] = load(rows + column + v * W);
  for (Index i = 1; i < count; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vec x = load(rows + i * stride + column + v * W);
      high[v] = high[v] < x ? x : high[v];
      low[v] = min(low[v], x);
    }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    store(highest + column + v * W, high[v]);
    store(lowest + column + v * W, low[v]);
  }
}

void bound_column(const float* rows, Index stride, Index count, Index column, float* highest, float* lowest) {
  float high = rows[column], low = high;
  for (Index i = 1; i < count; ++i) {
    const float x = rows[i * stride + column];
    high = high < x ? x : high;
    low = x < low ? x : low;
  }
  highest[column] = high;
  lowest[column] = low;
}

}  // namespace

template <>
void run(const PageBounds<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  for (Index p = 0; p < op.out.rows; ++p) {
    const float* rows = op.rows.data + p * op.page * op.rows.stride;
    const Index count = min(op.page, op.rows.rows - p * op.page);
    float* highest = op.out.data + p * op.out.stride;
    float* lowest = highest + d;
    Index c = 0;
    for (; c + 4 * W <= d; c += 4 * W) bound_columns<4>(rows, op.rows.stride, count, c, highest, lowest);
    for (; c + W <= d; c += W) bound_columns<1>(rows, op.rows.stride, count, c, highest, lowest);
    for (; c < d; ++c) bound_column(rows, op.rows.stride, count, c, highest, lowest);
  }
}

template <>
void run(const SplitSigns<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const float* row = op.rows.data + i * op.rows.stride;
    float* above = op.out.data + i * op.out.stride;
    float* below = above + d;
    Index c = 0;
    for (; c + W <= d; c += W) {
      const Vec x = load(row + c);
      store(above + c, x > Vec{} ? x : Vec{});
      store(below + c, x < Vec{} ? x : Vec{});
    }
    for (; c < d; ++c) {
      above[c] = row[c] > 0 ? row[c] : 0;
      below[c] = row[c] < 0 ? row[c] : 0;
    }
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
