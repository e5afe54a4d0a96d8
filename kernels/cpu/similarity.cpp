// SPDX-License-Identifier: Apache-2.0
#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

using Products = InnerProducts<HostMatrix>;

/// Products with the rows [begin, begin + count) of b, which are packed.
void multiply_strips(const Products& op, const float* strips, Index begin, Index count) {
  constexpr Index block = 4 * kTileRows;  // rows of a stay in the first-level cache while strips are read
  const Index d = op.a.cols;
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

/// The numbers of a that are not zero, row by row: of row i those from first[i] to first[i + 1].
struct NonZeros {
  Index* first;
  std::int32_t* columns;
};

/// Strips that are multiplied together, and columns of them that fit the first-level cache.
constexpr int kSparseStrips = W == 16 ? 8 : 6;
constexpr Index kSparseColumns = 24 * 1024 / (kSparseStrips * kStrip * Index{sizeof(float)});

/// Lists the numbers of a that are not zero. False where less than a third of them are zero, so that it does not pay.
bool list_nonzeros(const Products& op, Context& context, NonZeros& some) {
  const Index rows = op.a.rows, d = op.a.cols;
  if (rows < 4 * kTileRows || op.b.rows < kSparseStrips * kStrip) return false;
  Index zeros = 0;
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < d; ++c) zeros += op.a.data[i * op.a.stride + c] == 0;
  if (3 * zeros < rows * d) return false;
  some = {.first = scratch<Index>(context, 1, rows + 1),
          .columns = scratch<std::int32_t>(context, 2, rows * d - zeros + W)};
  Index at = 0;
  for (Index i = 0; i < rows; ++i) {
    some.first[i] = at;
    for (Index c = 0; c < d; c += W) {
      const IntVec kept = load_first(op.a.data + i * op.a.stride + c, d - c) != Vec{};
      at += compress(lane_numbers(c), bits(kept), some.columns + at);
    }
  }
  some.first[rows] = at;
  return true;
}

/// Whether packed rows are finite: only then may products with zero be left out.
bool are_finite(const float* strips, Index count, Index d) {
  Vec zeros = {};
  for (Index k = 0; k < round_up(count, kStrip) * d; k += W) zeros += load(strips + k) * broadcast(0.0f);
  return bits(zeros == Vec{}) == bits(Vec{} == Vec{});
}

/// As multiply_strips(), without the products with zero, which add nothing: the sums keep their order and bits. Columns
/// come in parts, between which the sums wait in `sums`.
void multiply_nonzeros(const Products& op, const NonZeros& some, const float* strips, Index begin, Index count,
                       Index* next, float* sums) {
  constexpr int vectors = 2 * kSparseStrips;
  const Index d = op.a.cols;
  for (Index strip = 0; strip < count; strip += kSparseStrips * kStrip) {
    const Index width = min(kSparseStrips * kStrip, round_up(count, kStrip) - strip);
    for (Index i = 0; i < op.a.rows; ++i) next[i] = some.first[i];
    for (Index k = 0; k < op.a.rows * vectors * W; ++k) sums[k] = 0;
    for (Index part = 0; part < d; part += kSparseColumns)
      for (Index i = 0; i < op.a.rows; ++i) {
        Vec acc[vectors];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) acc[v] = load(sums + (i * vectors + v) * W);
        const float* row = op.a.data + i * op.a.stride;
        const float* from[kSparseStrips];
        for (Index s = 0; s < kSparseStrips; ++s) from[s] = strips + (strip + min(s * kStrip, width - kStrip)) * d;
        Index k = next[i];
        for (; k < some.first[i + 1] && some.columns[k] < part + kSparseColumns; ++k) {
          const Index c = some.columns[k];
          const Vec x = broadcast(row[c]);
#pragma GCC unroll 16
          for (int v = 0; v < vectors; ++v) acc[v] = fma(x, load(from[v / 2] + c * kStrip + v % 2 * W), acc[v]);
        }
        next[i] = k;
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) store(sums + (i * vectors + v) * W, acc[v]);
      }
    for (Index i = 0; i < op.a.rows; ++i)
      for (Index j = 0; j < min(width, count - strip); ++j)
        op.out.data[i * op.out.stride + begin + strip + j] = sums[i * vectors * W + j];
  }
}

}  // namespace

template <>
void run(const Products& op, Context& context) {
  const Index d = op.a.cols;
  const Index panel = min(cached_rows(d, kSparseStrips * kStrip), round_up(op.b.rows, kStrip));
  auto* strips = scratch<float>(context, 0, panel * d);
  NonZeros some = {};
  const bool sparse = list_nonzeros(op, context, some);
  auto* next = scratch<Index>(context, 3, sparse ? op.a.rows : 0);
  auto* sums = scratch<float>(context, 4, sparse ? op.a.rows * kSparseStrips * kStrip : 0);
  for (Index begin = 0; begin < op.b.rows; begin += panel) {
    const Index count = min(panel, op.b.rows - begin);
    pack_strips(op.b.data + begin * op.b.stride, op.b.stride, count, d, strips);
    if (sparse && are_finite(strips, count, d))
      multiply_nonzeros(op, some, strips, begin, count, next, sums);
    else
      multiply_strips(op, strips, begin, count);
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
