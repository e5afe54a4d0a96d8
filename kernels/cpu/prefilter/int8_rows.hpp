// SPDX-License-Identifier: Apache-2.0
// Rows as 8-bit integers with one scale per row: y = row - centre = s q + e, with whole numbers q, and an error e whose
// norm is bounded. Norms are fp32 sums of d squares, which underflow below 2^-74; norm_bound() raises them above the
// exact norms. A difference is rounded by at most u |y|, u = 2^-24, and so is e: the bound of |e| holds for the exact
// differences.
//
// A Hadamard rotation before the conversion was measured on real keys and does not pay: the largest coordinate of a key
// is 2.6 to 3 times the root mean square once the mean is subtracted, and 2.6 times after a rotation.
#pragma once

#if KVBENCH_WIDTH == 16
#include "int8_avx512.hpp"
#else
#include "int8_avx2.hpp"
#endif

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Products of longer rows could overflow fp32.
constexpr float kInt8Limit = 0x1p40f;

/// Whether a prefilter is to be used by an operation for which it `pays` or does not.
inline bool wants_prefilter(const Context& context, bool pays, Index d) {
  if (d == 0 || d > kInt8Columns || context.prefilter == Prefilter::off || !prefilter_available(context.isa))
    return false;
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
  float scale;    // s
  float size;     // >= |row - centre|; not below kInt8Limit, or NaN, where the row cannot be used
  float error;    // >= |e|
  float norm2;    // |row - centre|^2, rounded
  float along;    // <centre, row - centre>, rounded
  float squares;  // sum of the squares of q, rounded
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

/// row - centre in columns [c, c + W), 0 from d on, and the centre there.
struct Difference {
  Vec y, centre;
  Difference(const float* row, const float* from, Index c, Index d) : centre(load_first(from + c, d - c)) {
    y = load_first(row + c, d - c) - centre;
  }
};

/// Writes q + offset, padded with `offset` to a multiple of W, where `offset` is that of points, or 0: that of
/// candidates. starts: [int8_starts(d)] for rows that are candidates or will be, or null.
inline Int8Row to_int8(const float* row, const float* centre, Index d, int offset, std::uint8_t* out,
                       std::int32_t* starts = nullptr) {
  Vec largest{}, size2{}, along{}, error2{}, squares{};
  PartNorms parts;
  for (Index c = 0; c < d; c += W) {
    const Difference own(row, centre, c, d);
    largest = max(largest, magnitude(own.y));
    size2 = fma(own.y, own.y, size2);
    along = fma(own.centre, own.y, along);
    parts.add(own.y, c);
  }
  const float range = max(largest), norm2 = sum(size2), size = norm_bound(norm2, d);
  const bool point = offset != 0, usable = size < kInt8Limit, zero = !(range > 0x1p-100f) || !usable;
  const auto limit = static_cast<float>(point ? kPointLimit : kCandidateLimit);
  const float least = parts.least_scale(point, d);
  const bool fine = range > least * limit;
  const float scale = zero ? 0 : fine ? range / limit : least, inverse = zero ? 0 : fine ? limit / range : 1 / least;
  Int8Starts sums;
  for (Index c = 0; c < d; c += W) {
    const Difference own(row, centre, c, d);
    const IntVec q = usable ? rounded(own.y * broadcast(inverse)) : IntVec{};  // NaN has no integer
    const Vec whole = __builtin_convertvector(q, Vec);
    const Vec rest = fma(broadcast(-scale), whole, own.y);
    error2 = fma(rest, rest, error2);
    squares = fma(whole, whole, squares);
    store_bytes(q, offset, out + c);
    if (starts != nullptr) sums.add(q, c, starts);
  }
  if (starts != nullptr) sums.finish(d, starts);
  return {.scale = scale,
          .size = size,
          .error = norm_bound(sum(error2), d) + 0x1p-23f * size,
          .norm2 = norm2,
          .along = sum(along),
          .squares = sum(squares)};
}

/// Arranges kStrip rows of bytes side by side, as [column / 4][lane][column % 4]: what one product instruction reads.
inline void pack_int8(const std::uint8_t* const* rows, Index d, std::uint8_t* out) {
  const float* quads[kStrip];  // pack_strip moves four bytes as if they were one float
  for (Index lane = 0; lane < kStrip; ++lane) quads[lane] = reinterpret_cast<const float*>(rows[lane]);
  pack_strip(quads, int8_pitch(d) / 4, reinterpret_cast<float*>(out));
}

/// Converts kStrip points, calls f(lane, Int8Row) for each, and packs them into `out`. No pointer but `starts`, of
/// kStrip rows, is null; `rows` and `out` have room for kStrip * int8_pitch(d) bytes.
template <class F>
inline void pack_as_int8(const float* const* points, const float* centre, Index d, std::uint8_t* rows,
                         std::uint8_t* out, F f, std::int32_t* starts = nullptr) {
  const std::uint8_t* converted[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) {
    std::uint8_t* row = rows + lane * int8_pitch(d);
    std::int32_t* const own = starts == nullptr ? nullptr : starts + lane * int8_starts(d);
    f(lane, to_int8(points[lane], centre, d, kPointOffset, row, own));
    converted[lane] = row;
  }
  pack_int8(converted, d, out);
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
