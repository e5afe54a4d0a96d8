// SPDX-License-Identifier: Apache-2.0
#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

template <>
void run(const InnerProducts<HostMatrix>& op, Context& context) {
  constexpr Index block = 4 * kTileRows;  // rows of a stay in the first-level cache while strips are read
  const Index d = op.a.cols;
  const Index panel = min(cached_rows(d, kStrip), round_up(op.b.rows, kStrip));
  auto* strips = scratch<float>(context, 0, panel * d);
  for (Index begin = 0; begin < op.b.rows; begin += panel) {
    const Index count = min(panel, op.b.rows - begin);
    pack_strips(op.b.data + begin * op.b.stride, op.b.stride, count, d, strips);
    for (Index row = 0; row < op.a.rows; row += block)
      for (Index strip = 0; strip < count; strip += kStrip)
        for (Index i = row; i < min(op.a.rows, row + block); i += kTileRows)
          with_rows(min(kTileRows, op.a.rows - i), [&]<int Rows>() {
            Vec acc[Rows][2];
            product_tile<Rows>(op.a.data + i * op.a.stride, op.a.stride, strips + strip * d, d, acc);
            for (int r = 0; r < Rows; ++r)
              write_strip(acc[r], count - strip, op.out.data + (i + r) * op.out.stride + begin + strip);
          });
  }
}

namespace {

constexpr int H = W / 2;
typedef float Floats __attribute__((vector_size(4 * H), aligned(4), may_alias));
using Doubles = double __attribute__((vector_size(8 * H)));
typedef double UnalignedDoubles __attribute__((vector_size(8 * H), aligned(8), may_alias));

inline Doubles widen(const float* p) { return __builtin_convertvector(*reinterpret_cast<const Floats*>(p), Doubles); }
inline void narrow(Doubles x, float* p) { *reinterpret_cast<Floats*>(p) = __builtin_convertvector(x, Floats); }

}  // namespace

template <>
void run(const NormalizeRows<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const float* row = op.rows.data + i * op.rows.stride;
    float* out = op.out.data + i * op.out.stride;
    const double norm2 = squared_norm(row, d);
    const double inverse = norm2 > 0 ? 1 / __builtin_sqrt(norm2) : 0;
    Index c = 0;
    for (; c + H <= d; c += H) narrow(widen(row + c) * inverse, out + c);
    for (; c < d; ++c) out[c] = static_cast<float>(static_cast<double>(row[c]) * inverse);
  }
}

namespace {

/// sums += weight * row, in fp64.
inline void add_row(const float* row, double weight, Index d, double* sums) {
  Index c = 0;
  for (; c + H <= d; c += H) *reinterpret_cast<UnalignedDoubles*>(sums + c) += widen(row + c) * weight;
  for (; c < d; ++c) sums[c] += weight * static_cast<double>(row[c]);
}

using Means = MeanRows<HostMatrix>;

inline double weight_of(const Means& op, Index row) {
  return op.weights.data == nullptr ? 1 : static_cast<double>(op.weights.data[row * op.weights.stride]);
}

/// The means of columns [begin, begin + width).
void mean_columns(const Means& op, const double* mass, Index begin, Index width, double* sums) {
  for (Index i = 0; i < op.out.rows * width; ++i) sums[i] = 0;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const Index label = op.labels.data[i * op.labels.stride];
    if (label >= 0) add_row(op.rows.data + i * op.rows.stride + begin, weight_of(op, i), width, sums + label * width);
  }
  for (Index label = 0; label < op.out.rows; ++label) {
    if (mass[label] == 0) continue;
    float* out = op.out.data + label * op.out.stride + begin;
    for (Index c = 0; c < width; ++c) out[c] = static_cast<float>(sums[label * width + c] / mass[label]);
  }
}

}  // namespace

template <>
void run(const Means& op, Context& context) {
  constexpr Index held = 1 << 22;                    // sums at a time, 32 MiB: labels may be half as many as rows
  constexpr Index line = 64 / Index{sizeof(float)};  // narrower columns would read each line of a row again
  const Index d = op.rows.cols, labels = op.out.rows;
  const Index width = min(d, max(held / max(labels, 1) / line, 1) * line);
  auto* sums = scratch<double>(context, 0, labels * width);
  auto* mass = scratch<double>(context, 1, labels);
  for (Index label = 0; label < labels; ++label) mass[label] = 0;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const Index label = op.labels.data[i * op.labels.stride];
    if (label >= 0) mass[label] += weight_of(op, i);
  }
  for (Index label = 0; label < labels; ++label) op.mass.data[label * op.mass.stride] = static_cast<float>(mass[label]);
  for (Index begin = 0; begin < d; begin += width) mean_columns(op, mass, begin, min(width, d - begin), sums);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
