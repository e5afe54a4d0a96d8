// SPDX-License-Identifier: Apache-2.0
// A filter for searches of the largest <x, c> + b_c: bounds from products of bytes, four times as fast as fp32, leave few
// candidates of each point, and only these are computed as they would have been without it. Nothing else changes: what is left
// holds every candidate that the full search could have chosen, ties included. Needs AVX512-VNNI.
//
// With m any vector (a mean, so that differences are short), y = x - m and z = c - m,
//     <x, c> + b_c = <x, m> + <y, z> + beta_c,   beta_c = <m, z> + b_c,
// and the first term is the same for all candidates. Rows become bytes with one scale each: y = s q + e, q in [-127, 127], and
//     |<y, z> - s_y s_z <q_y, q_z>| = |<s_y q_y, e_z> + <e_y, z>| <= (|y| + |e_y|) |e_z| + |e_y| |z|.
// <q_y, q_z> is exact: |sum| <= 127^2 d < 2^31 for d <= kByteColumns. With A = s_y s_z <q_y, q_z> + beta_c and E the right side
// above, A - E and A + E enclose <x, c> + b_c - <x, m>, but for roundings, which `slack` bounds. Let u = 2^-24 and M bound what
// occurs: M = 2 X C + B with X = |m| + |y| + |e_y|, C = the largest |m| + |z| + |e_z|, B = the largest |beta_c| + |b_c|.
//     the chain of d FMAs of the exact search, and + b_c     1.01 d u |x| |c| + u M
//     <m, z>, summed in any order, from rounded z            1.01 d u |m| |z| + u |m| |z|
//     beta_c; int to float, s_z, s_y, + beta_c; E, A -+ E    8 u M
// Together less than 2.02 d u M + 10 u M < slack = 4 (d + 8) u M + 2^-120, the last for underflow. Norms are fp32 sums of d
// squares that underflow below 2^-74; `norm_bound` lifts them above the exact ones.
// So a candidate wins only where its A + E >= the largest A - E of the point's candidates, less 2 slack. Rows that are not
// finite, or longer than kByteLimit (products could overflow), leave no bounds: the caller does without the filter.
//
// A Hadamard rotation before the bytes was measured on real keys and does not pay: their largest coordinate is 2.6 to 3 times
// the root of the mean square once the mean is gone, 2.6 after a rotation.
#pragma once

#include "product_tile.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

using UnalignedInt = std::int32_t __attribute__((aligned(1), may_alias));

constexpr Index kByteColumns = 1 << 16;
constexpr float kByteLimit = 0x1p40f;
/// Candidates of a byte tile; arrays of candidates are filled up to a multiple.
constexpr Index kByteTile = 8;

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
  float along;       // <centre, row - centre>
  std::int32_t sum;  // of q
};

/// f(c, mask) for each W columns from c on; lanes of the mask that are 0 lie beyond d.
template <class F>
inline void for_columns(Index d, F f) {
  Index c = 0;
  for (; c + W <= d; c += W) f(c, static_cast<__mmask16>(0xffff));
  if (c < d) f(c, static_cast<__mmask16>((1 << (d - c)) - 1));
}

/// In all lanes: op over the lanes.
template <class F>
inline Vec fold(Vec x, F op) {
  x = op(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  x = op(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  x = op(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  return op(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
}
inline float total(Vec x) {
  return fold(x, [](Vec a, Vec b) { return a + b; })[0];
}

/// Writes q + offset, filled up with `offset` to byte_pitch(d).
inline ByteRow to_bytes(const float* row, const float* centre, Index d, std::uint8_t offset, std::uint8_t* out) {
  const auto load_columns = [](const float* from, __mmask16 mask) { return Vec(_mm512_maskz_loadu_ps(mask, from)); };
  Vec largest{}, size2{}, along{}, error2{}, sum{};
  for_columns(d, [&](Index c, __mmask16 mask) {
    const Vec m = load_columns(centre + c, mask);
    const Vec y = load_columns(row + c, mask) - m;
    largest = max(largest, max(y, -y));
    size2 = fma(y, y, size2);
    along = fma(m, y, along);
  });
  const float range = fold(largest, [](Vec a, Vec b) { return max(a, b); })[0];
  const float size = norm_bound(total(size2), d);
  const bool usable = size < kByteLimit, zero = !(range > 0x1p-100f) || !usable;
  const float scale = zero ? 0 : range / 127, inverse = zero ? 0 : 127 / range;
  for_columns(d, [&](Index c, __mmask16 mask) {
    const Vec y = load_columns(row + c, mask) - load_columns(centre + c, mask);
    const __m512i q = _mm512_maskz_cvtps_epi32(0xffff, __m512(y * broadcast(inverse)));
    const Vec whole = __builtin_convertvector(IntVec(q), Vec);
    const Vec rest = fma(broadcast(-scale), whole, y);
    error2 = fma(rest, rest, error2);
    sum += whole;
    const __m128i bytes = _mm_add_epi8(_mm512_maskz_cvtepi32_epi8(0xffff, q), _mm_set1_epi8(static_cast<char>(offset)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c), bytes);
  });
  return {.scale = scale,
          .size = size,
          .error = norm_bound(total(error2), d) + 0x1p-23f * size,
          .along = total(along),
          .sum = static_cast<std::int32_t>(usable ? total(sum) : 0)};
}

/// Up to kStrip points side by side, one a lane: [column / 4][lane][column % 4] of q + 128, and the bounds so far.
struct ByteStrip {
  const std::uint8_t* bytes;
  Vec scale[2], reach[2], error[2];   // s; |y| + |e|; |e|
  Vec slack[2];                       // twice that of the derivation
  Vec highest[2];                     // the largest lower bound of a candidate seen
  IntVec first[2], last[2], self[2];  // candidates that a masked tile sees: first <= c < last, c != self
};

/// Candidates as bytes, and the largest of the numbers that enter M.
struct ByteCandidates {
  Index d;
  const float* centre;
  float centre_size;
  std::int8_t* bytes;                   // [rows][byte_pitch(d)]
  float *scale, *shift, *size, *error;  // s, beta, |z|, |e|
  std::int32_t* start;                  // -128 times the sum of q: takes the offset of the points out again
  float longest = 0;                    // C
  float highest = 0;                    // B
};

/// Centre and memory for rows that are still to be set. Slots [slot, slot + 3) of the workspace.
inline ByteCandidates byte_candidates(const float* data, Index stride, Index rows, Index capacity, Index d, Context& context,
                                      int slot) {
  constexpr Index sampled = 512;  // rows of the mean: any vector would do
  auto* centre = scratch<float>(context, slot, d);
  for (Index c = 0; c < d; ++c) centre[c] = 0;
  const Index step = max(rows / sampled, 1), count = (rows + step - 1) / step;
  for (Index i = 0; i < rows; i += step)
    for (Index c = 0; c < d; ++c) centre[c] += data[i * stride + c];
  for (Index c = 0; c < d; ++c) centre[c] /= static_cast<float>(max(count, 1));
  const Index padded = round_up(capacity, kByteTile);
  auto* bytes = scratch<std::int8_t>(context, slot + 1, padded * byte_pitch(d));
  auto* numbers = scratch<float>(context, slot + 2, 5 * padded);
  return {.d = d,
          .centre = centre,
          .centre_size = norm_bound(static_cast<float>(squared_norm(centre, d)), d),
          .bytes = bytes,
          .scale = numbers,
          .shift = numbers + padded,
          .size = numbers + 2 * padded,
          .error = numbers + 3 * padded,
          .start = reinterpret_cast<std::int32_t*>(numbers + 4 * padded)};
}

/// Sets candidate i; false where it cannot be used.
inline bool set_candidate(ByteCandidates& set, Index i, const float* row, float bias) {
  const ByteRow own = to_bytes(row, set.centre, set.d, 0, reinterpret_cast<std::uint8_t*>(set.bytes) + i * byte_pitch(set.d));
  set.scale[i] = own.scale;
  set.shift[i] = own.along + bias;
  set.size[i] = own.size;
  set.error[i] = own.error;
  set.start[i] = -128 * own.sum;
  const float length = set.centre_size + own.size + own.error;
  const float height = __builtin_fabsf(set.shift[i]) + __builtin_fabsf(bias);
  if (!(length < kByteLimit) || !(height < kByteLimit * kByteLimit)) return false;
  set.longest = length > set.longest ? length : set.longest;
  set.highest = height > set.highest ? height : set.highest;
  return true;
}

/// kStrip points as a strip in `bytes`, kStrip * byte_pitch(d) of them; `rows` has the same space again. No pointer is null.
/// False where a point cannot be used. Which candidates they see is left to the caller.
inline bool set_strip(const ByteCandidates& set, const float* const* points, std::uint8_t* rows, std::uint8_t* bytes,
                      ByteStrip& strip) {
  const Index d = set.d, pitch = byte_pitch(d);
  const float* quads[kStrip];  // pack_strip moves four bytes as if they were a float
  bool usable = true;
  for (Index lane = 0; lane < kStrip; ++lane) {
    const ByteRow own = to_bytes(points[lane], set.centre, d, 128, rows + lane * pitch);
    quads[lane] = reinterpret_cast<const float*>(rows + lane * pitch);
    const Index v = lane / W, i = lane % W;
    strip.scale[v][i] = own.scale;
    strip.reach[v][i] = own.size + own.error;
    strip.error[v][i] = own.error;
    const float length = set.centre_size + own.size + own.error;
    usable = usable && length < kByteLimit;
    strip.slack[v][i] = (2 * length * set.longest + set.highest) * static_cast<float>(d + 8) * 0x1p-21f + 0x1p-119f;
  }
  pack_strip(quads, pitch / 4, reinterpret_cast<float*>(bytes));
  strip.bytes = bytes;
  for (int v = 0; v < 2; ++v) strip.highest[v] = broadcast(-kInfinity);
  return usable;
}

/// Upper bounds [kByteTile][kStrip] of the candidates from `candidate` on; raises strip.highest. Masked: candidates that a
/// point does not see have the bound -inf.
template <bool Masked>
[[gnu::target("avx512vnni"), gnu::noinline]] void byte_tile(const ByteCandidates& set, Index candidate, ByteStrip& strip,
                                                            float* upper) {
  const Index pitch = byte_pitch(set.d), quads = (set.d + 3) / 4;
  const std::int8_t* rows = set.bytes + candidate * pitch;
  __m512i acc[kByteTile][2];
#pragma GCC unroll 8
  for (int r = 0; r < kByteTile; ++r) acc[r][0] = acc[r][1] = _mm512_set1_epi32(set.start[candidate + r]);
#pragma GCC unroll 2
  for (Index c = 0; c < quads; ++c) {
    const __m512i s0 = _mm512_load_si512(strip.bytes + c * 4 * kStrip);
    const __m512i s1 = _mm512_load_si512(strip.bytes + c * 4 * kStrip + 64);
#pragma GCC unroll 8
    for (int r = 0; r < kByteTile; ++r) {
      const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const UnalignedInt*>(rows + r * pitch + 4 * c));
      acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], s0, x);
      acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], s1, x);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Vec highest = strip.highest[v];
#pragma GCC unroll 8
    for (int r = 0; r < kByteTile; ++r) {
      const Index c = candidate + r;
      const Vec product = __builtin_convertvector(IntVec(acc[r][v]), Vec) * broadcast(set.scale[c]);
      const Vec middle = fma(product, strip.scale[v], broadcast(set.shift[c]));
      const Vec width = fma(strip.error[v], broadcast(set.size[c]), strip.reach[v] * broadcast(set.error[c]));
      Vec low = middle - width, high = middle + width;
      if constexpr (Masked) {
        const IntVec own = broadcast(static_cast<std::int32_t>(c));
        const IntVec seen = (own >= strip.first[v]) & (own < strip.last[v]) & (own != strip.self[v]);
        low = select(seen, low, broadcast(-kInfinity));
        high = select(seen, high, broadcast(-kInfinity));
      }
      highest = max(highest, low);
      store(upper + r * kStrip + v * W, high);
    }
    strip.highest[v] = highest;
  }
}

/// Not the winner of its point where `upper` is below the point's threshold.
struct Survivor {
  std::int32_t point, candidate;
  float upper;
};

/// What an upper bound must reach; +inf where no candidate has been seen.
inline Vec threshold(const ByteStrip& strip, int v) {
  return select(strip.highest[v] > broadcast(-kInfinity), strip.highest[v] - strip.slack[v], broadcast(kInfinity));
}

/// A growing list with an end.
struct Survivors {
  Survivor* items;
  Index capacity, count = 0;
};

/// Appends the candidates [candidate, candidate + rows) that can still win for the first `lanes` points of a strip, in
/// increasing order for each; point numbers begin at `point`. False where the list is full.
inline bool collect(const ByteStrip& strip, const float* upper, Index candidate, Index rows, Index point, Index lanes,
                    Survivors& out) {
  const auto low = __m512(threshold(strip, 0)), high = __m512(threshold(strip, 1));
  const std::uint32_t live = lanes < kStrip ? (std::uint32_t{1} << lanes) - 1 : ~std::uint32_t{0};
  for (Index r = 0; r < rows; ++r) {
    const float* row = upper + r * kStrip;
    const std::uint32_t kept = _mm512_cmp_ps_mask(_mm512_load_ps(row), low, _CMP_GE_OQ) |
                               std::uint32_t{_mm512_cmp_ps_mask(_mm512_load_ps(row + W), high, _CMP_GE_OQ)} << W;
    if ((kept & live) == 0) continue;
    if (out.count + kStrip > out.capacity) return false;
    for (std::uint32_t rest = kept & live; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      out.items[out.count++] = {.point = static_cast<std::int32_t>(point + lane),
                                .candidate = static_cast<std::int32_t>(candidate + r),
                                .upper = row[lane]};
    }
  }
  return true;
}

/// Drops those below the thresholds of the strips as they are now; point p is lane p % kStrip of strip p / kStrip.
inline void prune(const ByteStrip* strips, Survivors& survivors) {
  Index kept = 0;
  for (Index i = 0; i < survivors.count; ++i) {
    const Survivor& s = survivors.items[i];
    const ByteStrip& strip = strips[s.point / kStrip];
    const int v = s.point / W % 2, lane = s.point % W;
    if (s.upper >= strip.highest[v][lane] - strip.slack[v][lane]) survivors.items[kept++] = s;
  }
  survivors.count = kept;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
