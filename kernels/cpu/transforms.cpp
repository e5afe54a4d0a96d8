// SPDX-License-Identifier: Apache-2.0
// The linear maps of codes.hpp.
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// Sums and differences of lanes at this distance.
template <int Distance>
Vec butterfly(Vec x) {
  const Vec other = swap_lanes<Distance>(x);
  return select((lane_numbers(0) & Distance) != 0, other - x, x + other);
}

/// Sums and differences within vectors, from distance block / 2 where a block is shorter than a vector.
template <int Distance = W / 2>
Vec butterflies(Vec x, Index block) {
  if (Distance < block) x = butterfly<Distance>(x);
  if constexpr (Distance > 1) x = butterflies<Distance / 2>(x, block);
  return x;
}

/// Sums and differences of whole vectors of x[0, block).
void vector_butterflies(float* x, Index block) {
  for (Index h = block / 2; h >= W; h /= 2)
    for (Index begin = 0; begin < block; begin += 2 * h)
      for (Index j = begin; j < begin + h; j += W) {
        const Vec a = load(x + j), b = load(x + j + h);
        store(x + j, a + b);
        store(x + j + h, a - b);
      }
}

constexpr int H = W / 2;  ///< doubles of a vector
constexpr int kProjectedRows = 4;
constexpr int kProjectedVectors = 2;
constexpr int kProjectedCols = kProjectedVectors * H;

DoubleVec load_doubles(const double* p) {
  DoubleVec x;
  __builtin_memcpy(&x, p, sizeof(x));
  return x;
}

/// sums[r][j] = <rows[r], column j of the strip [d][kProjectedCols]>. A product of two floats is exact in fp64, so that
/// a fused sum is the same as a rounded product and a sum.
void project_tile(const double* rows, const double* strip, Index d, double (*sums)[kProjectedCols]) {
  DoubleVec acc[kProjectedRows][kProjectedVectors] = {};
  for (Index c = 0; c < d; ++c)
    for (int v = 0; v < kProjectedVectors; ++v) {
      const DoubleVec b = load_doubles(strip + c * kProjectedCols + v * H);
      for (int r = 0; r < kProjectedRows; ++r) acc[r][v] = fma(DoubleVec{} + rows[r * d + c], b, acc[r][v]);
    }
  __builtin_memcpy(sums, acc, sizeof(acc));
}

}  // namespace

template <>
void run(const HadamardRows<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols, block = op.block;
  const auto factor = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(block)));
  for (Index i = 0; i < op.rows.rows; ++i) {
    float* out = op.out.data + i * op.out.stride;
    __builtin_memcpy(out, op.rows.data + i * op.rows.stride, static_cast<std::size_t>(d) * sizeof(float));
    for (Index c = 0; c < d; c += block) vector_butterflies(out + c, block);
    Index c = 0;
    for (; c + W <= d; c += W) store(out + c, butterflies(load(out + c), block) * broadcast(factor));
    if (c == d) continue;
    Vec rest{};
    const std::size_t bytes = static_cast<std::size_t>(d - c) * sizeof(float);
    __builtin_memcpy(&rest, out + c, bytes);
    rest = butterflies(rest, block) * broadcast(factor);
    __builtin_memcpy(out + c, &rest, bytes);
  }
}

template <>
void run(const ProjectRows<HostMatrix>& op, Context& context) {
  const Index n = op.rows.rows, d = op.rows.cols, m = op.matrix.rows;
  // Strips of the transposed matrix in fp64; columns beyond m are zero.
  const Index strips = (m + kProjectedCols - 1) / kProjectedCols;
  double* const matrix = scratch<double>(context, 0, strips * kProjectedCols * d);
  for (Index j = 0; j < strips * kProjectedCols; ++j)
    for (Index c = 0; c < d; ++c)
      matrix[(j / kProjectedCols * d + c) * kProjectedCols + j % kProjectedCols] =
          j < m ? static_cast<double>(op.matrix.data[j * op.matrix.stride + c]) : 0;
  double* const rows = scratch<double>(context, 1, kProjectedRows * d);
  for (Index i = 0; i < n; i += kProjectedRows) {
    const Index height = min(kProjectedRows, n - i);
    for (Index r = 0; r < kProjectedRows; ++r)  // the last row stands for those that are missing
      for (Index c = 0; c < d; ++c)
        rows[r * d + c] = static_cast<double>(op.rows.data[(i + min(r, height - 1)) * op.rows.stride + c]);
    for (Index s = 0; s < strips; ++s) {
      double sums[kProjectedRows][kProjectedCols];
      project_tile(rows, matrix + s * kProjectedCols * d, d, sums);
      const Index begin = s * kProjectedCols, width = min(kProjectedCols, m - begin);
      for (Index r = 0; r < height; ++r)
        for (Index j = 0; j < width; ++j)
          op.out.data[(i + r) * op.out.stride + begin + j] = static_cast<float>(sums[r][j]);
    }
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
