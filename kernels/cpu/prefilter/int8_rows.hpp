// SPDX-License-Identifier: Apache-2.0
// Rows as 8-bit integers with one scale per row: y = row - centre = s q + e, with q in [-127, 127] and an error e whose
// norm is bounded. Norms are fp32 sums of d squares, which underflow below 2^-74; norm_bound() raises them above the
// exact norms. A difference is rounded by at most u |y|, u = 2^-24, and so is e: the bound of |e| holds for the exact
// differences.
//
// A Hadamard rotation before the conversion was measured on real keys and does not pay: the largest coordinate of a key
// is 2.6 to 3 times the root mean square once the mean is subtracted, and 2.6 times after a rotation.
#pragma once

#include "../pack.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

typedef std::int32_t UnalignedInt __attribute__((aligned(1), may_alias));

/// Sums of this many products of 8-bit integers fit 32 bits.
constexpr Index kInt8Columns = 1 << 16;
/// Products of longer rows could overflow fp32.
constexpr float kInt8Limit = 0x1p40f;

/// Whether a prefilter is to be used by an operation for which it `pays` or does not.
inline bool wants_prefilter(const Context& context, bool pays, Index d) {
  if (d > kInt8Columns || context.prefilter == Prefilter::off || !prefilter_available()) return false;
  return pays || context.prefilter == Prefilter::always;
}

/// Bytes from one row to the next.
inline Index int8_pitch(Index d) { return round_up(d, W); }

/// Not below the norm whose square was computed as `norm2`.
inline float norm_bound(float norm2, Index d) {
  return __builtin_sqrtf(norm2) * (1 + static_cast<float>(d + 16) * 0x1p-23f) + 0x1p-60f;
}

/// The scale of a row, and the numbers that bound its products.
struct Int8Row {
  float scale;       // s
  float size;        // >= |row - centre|; not below kInt8Limit, or NaN, where the row cannot be used
  float error;       // >= |row - centre - s q|
  float norm2;       // |row - centre|^2 and
  float along;       // <centre, row - centre>: rounded sums of rounded differences
  std::int32_t sum;  // of q
  float squares;     // sum of the squares of q, rounded
};

/// The mean of up to 512 to 1023 rows at equal distances. The bounds hold for any centre; near the mean they are tight.
inline void mean_of(const float* data, Index stride, Index rows, Index d, float* centre) {
  constexpr Index sampled = 512;
  const Index step = max(rows / sampled, 1), count = (rows + step - 1) / step;
  for (Index c = 0; c < d; ++c) centre[c] = 0;
  for (Index i = 0; i < rows; i += step)
    for (Index c = 0; c < d; ++c) centre[c] += data[i * stride + c];
  for (Index c = 0; c < d; ++c) centre[c] /= static_cast<float>(max(count, 1));
}

/// Calls f(c, mask) for every W columns from c on; the mask is 0 in lanes beyond d.
template <class F>
inline void for_columns(Index d, F f) {
  Index c = 0;
  for (; c + W <= d; c += W) f(c, static_cast<__mmask16>(0xffff));
  if (c < d) f(c, static_cast<__mmask16>((1 << (d - c)) - 1));
}

/// Writes q + offset, padded with `offset` to int8_pitch(d).
inline Int8Row to_int8(const float* row, const float* centre, Index d, std::uint8_t offset, std::uint8_t* out) {
  const auto load_columns = [](const float* from, __mmask16 mask) { return Vec(_mm512_maskz_loadu_ps(mask, from)); };
  Vec largest{}, size2{}, along{}, error2{}, integer_sum{}, squares{};
  for_columns(d, [&](Index c, __mmask16 mask) {
    const Vec m = load_columns(centre + c, mask);
    const Vec y = load_columns(row + c, mask) - m;
    largest = max(largest, max(y, -y));
    size2 = fma(y, y, size2);
    along = fma(m, y, along);
  });
  const float range = max(largest);
  const float norm2 = sum(size2), size = norm_bound(norm2, d);
  const bool usable = size < kInt8Limit, zero = !(range > 0x1p-100f) || !usable;
  const float scale = zero ? 0 : range / 127, inverse = zero ? 0 : 127 / range;
  for_columns(d, [&](Index c, __mmask16 mask) {
    const Vec y = load_columns(row + c, mask) - load_columns(centre + c, mask);
    const __m512i q = _mm512_maskz_cvtps_epi32(0xffff, __m512(y * broadcast(inverse)));
    const Vec whole = __builtin_convertvector(IntVec(q), Vec);
    const Vec rest = fma(broadcast(-scale), whole, y);
    error2 = fma(rest, rest, error2);
    integer_sum += whole;
    squares = fma(whole, whole, squares);
    const __m128i bytes = _mm_add_epi8(_mm512_maskz_cvtepi32_epi8(0xffff, q), _mm_set1_epi8(static_cast<char>(offset)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c), bytes);
  });
  return {.scale = scale,
          .size = size,
          .error = norm_bound(sum(error2), d) + 0x1p-23f * size,
          .norm2 = norm2,
          .along = sum(along),
          .sum = static_cast<std::int32_t>(usable ? sum(integer_sum) : 0),
          .squares = sum(squares)};
}

/// Arranges kStrip rows of bytes side by side, as [column / 4][lane][column % 4]: what one product instruction reads.
inline void pack_int8(const std::uint8_t* const* rows, Index d, std::uint8_t* out) {
  const float* quads[kStrip];  // pack_strip moves four bytes as if they were one float
  for (Index lane = 0; lane < kStrip; ++lane) quads[lane] = reinterpret_cast<const float*>(rows[lane]);
  pack_strip(quads, int8_pitch(d) / 4, reinterpret_cast<float*>(out));
}

/// Converts kStrip rows to q + 128, calls f(lane, Int8Row) for each, and packs them into `out`. No pointer is null;
/// `rows` and `out` have room for kStrip * int8_pitch(d) bytes.
template <class F>
inline void pack_as_int8(const float* const* points, const float* centre, Index d, std::uint8_t* rows,
                         std::uint8_t* out, F f) {
  const std::uint8_t* converted[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) {
    std::uint8_t* row = rows + lane * int8_pitch(d);
    f(lane, to_int8(points[lane], centre, d, 128, row));
    converted[lane] = row;
  }
  pack_int8(converted, d, out);
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
