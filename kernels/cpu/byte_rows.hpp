// SPDX-License-Identifier: Apache-2.0
// Rows as bytes with one scale each, and how far these lie from the rows: y = row - centre = s q + e, q in [-127, 127].
// Norms are fp32 sums of d squares that underflow below 2^-74; `norm_bound` lifts them above the exact ones. A difference is
// rounded by at most u |y|, u = 2^-24, and so is e: the bound of |e| holds for the exact differences.
//
// A Hadamard rotation before the bytes was measured on real keys and does not pay: their largest coordinate is 2.6 to 3 times
// the root of the mean square once the mean is gone, 2.6 after a rotation.
#pragma once

#include "pack.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

using UnalignedInt = std::int32_t __attribute__((aligned(1), may_alias));

/// Sums of kByteColumns products of bytes fit 32 bits; longer rows than kByteLimit could overflow fp32 in their products.
constexpr Index kByteColumns = 1 << 16;
constexpr float kByteLimit = 0x1p40f;

/// Whether to filter, where the operation alone would say `pays`.
inline bool wants_filter(const Context& context, bool pays, Index d) {
  if (d > kByteColumns || context.filter == ByteFilter::off || !byte_filter_available()) return false;
  return pays || context.filter == ByteFilter::always;
}

/// Bytes from row to row.
inline Index byte_pitch(Index d) { return round_up(d, W); }

/// Not below the norm whose square was computed as `norm2`.
inline float norm_bound(float norm2, Index d) {
  return __builtin_sqrtf(norm2) * (1 + static_cast<float>(d + 16) * 0x1p-23f) + 0x1p-60f;
}

/// A row as bytes s q, with the numbers that bound its products.
struct ByteRow {
  float scale;       // s
  float size;        // >= |row - centre|; not below kByteLimit, or NaN, where the row cannot be used
  float error;       // >= |row - centre - s q|
  float norm2;       // |row - centre|^2, and
  float along;       // <centre, row - centre>: rounded sums of rounded differences
  std::int32_t sum;  // of q
  float squares;     // of q, as a rounded sum
};

/// A mean of the rows, or of some of them: any vector would do for a centre.
inline void mean_of(const float* data, Index stride, Index rows, Index d, float* centre) {
  constexpr Index sampled = 512;
  const Index step = max(rows / sampled, 1), count = (rows + step - 1) / step;
  for (Index c = 0; c < d; ++c) centre[c] = 0;
  for (Index i = 0; i < rows; i += step)
    for (Index c = 0; c < d; ++c) centre[c] += data[i * stride + c];
  for (Index c = 0; c < d; ++c) centre[c] /= static_cast<float>(max(count, 1));
}

/// f(c, mask) for each W columns from c on; lanes of the mask that are 0 lie beyond d.
template <class F>
inline void for_columns(Index d, F f) {
  Index c = 0;
  for (; c + W <= d; c += W) f(c, static_cast<__mmask16>(0xffff));
  if (c < d) f(c, static_cast<__mmask16>((1 << (d - c)) - 1));
}

/// Writes q + offset, filled up with `offset` to byte_pitch(d).
inline ByteRow to_bytes(const float* row, const float* centre, Index d, std::uint8_t offset, std::uint8_t* out) {
  const auto load_columns = [](const float* from, __mmask16 mask) { return Vec(_mm512_maskz_loadu_ps(mask, from)); };
  Vec largest{}, size2{}, along{}, error2{}, bytes_sum{}, squares{};
  for_columns(d, [&](Index c, __mmask16 mask) {
    const Vec m = load_columns(centre + c, mask);
    const Vec y = load_columns(row + c, mask) - m;
    largest = max(largest, max(y, -y));
    size2 = fma(y, y, size2);
    along = fma(m, y, along);
  });
  const float range = max(largest);
  const float norm2 = sum(size2), size = norm_bound(norm2, d);
  const bool usable = size < kByteLimit, zero = !(range > 0x1p-100f) || !usable;
  const float scale = zero ? 0 : range / 127, inverse = zero ? 0 : 127 / range;
  for_columns(d, [&](Index c, __mmask16 mask) {
    const Vec y = load_columns(row + c, mask) - load_columns(centre + c, mask);
    const __m512i q = _mm512_maskz_cvtps_epi32(0xffff, __m512(y * broadcast(inverse)));
    const Vec whole = __builtin_convertvector(IntVec(q), Vec);
    const Vec rest = fma(broadcast(-scale), whole, y);
    error2 = fma(rest, rest, error2);
    bytes_sum += whole;
    squares = fma(whole, whole, squares);
    const __m128i bytes = _mm_add_epi8(_mm512_maskz_cvtepi32_epi8(0xffff, q), _mm_set1_epi8(static_cast<char>(offset)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c), bytes);
  });
  return {.scale = scale,
          .size = size,
          .error = norm_bound(sum(error2), d) + 0x1p-23f * size,
          .norm2 = norm2,
          .along = sum(along),
          .sum = static_cast<std::int32_t>(usable ? sum(bytes_sum) : 0),
          .squares = sum(squares)};
}

/// kStrip rows side by side, as [column / 4][lane][column % 4] of q + 128; f(lane, ByteRow) for each. No pointer is null;
/// `rows` and `bytes`: kStrip * byte_pitch(d).
template <class F>
inline void pack_bytes(const float* const* points, const float* centre, Index d, std::uint8_t* rows, std::uint8_t* bytes, F f) {
  const Index pitch = byte_pitch(d);
  const float* quads[kStrip];  // pack_strip moves four bytes as if they were a float
  for (Index lane = 0; lane < kStrip; ++lane) {
    f(lane, to_bytes(points[lane], centre, d, 128, rows + lane * pitch));
    quads[lane] = reinterpret_cast<const float*>(rows + lane * pitch);
  }
  pack_strip(quads, pitch / 4, reinterpret_cast<float*>(bytes));
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
