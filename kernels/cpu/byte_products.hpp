// SPDX-License-Identifier: Apache-2.0
// A filter for searches of the largest score of a point x among candidates c: bounds from products of bytes, four times as fast
// as fp32, leave few candidates of each point, and only these are computed as they would have been without it. What is left
// holds every candidate that the full search could have chosen, ties included, so nothing else changes. Needs AVX512-VNNI.
//
// With m any vector (a mean, so that differences are short), y = x - m and z = c - m,
//     products    <x, c> + b_c = <x, m> + <y, z> + beta_c,                    beta_c = <m, z> + b_c
//     distances   -|x - c|^2 / 2 = -|y|^2 / 2 + <y, z> + beta_c,              beta_c = -|z|^2 / 2
// and the first term is the same for all candidates. With y = s q + e and z likewise (byte_rows.hpp),
//     |<y, z> - s_y s_z <q_y, q_z>| = |<s_y q_y, e_z> + <e_y, z>| <= (|y| + |e_y|) |e_z| + |e_y| |z|,
// and <q_y, q_z> is exact. With A = s_y s_z <q_y, q_z> + beta_c and E the right side above, A - E and A + E enclose the score
// less that first term, but for roundings, each a multiple of u = 2^-24 of a bound M of what occurs:
//     products    M = 2 X C + B with X = |m| + |y| + |e_y|, C = the largest |m| + |z| + |e_z|, B = the largest |beta_c| + |b_c|
//       the chain of d FMAs of the full search, and + b_c     1.01 d u |x| |c| + u M
//       <m, z>, summed in any order, from rounded z           1.01 d u |m| |z| + u |m| |z|
//     distances   M = (Y + Z)^2 with Y = |y| + |e_y|, Z = the largest |z| + |e_z|
//       the chain of d subtractions and FMAs, halved          1.01 (d + 3) u |x - c|^2 / 2
//       |z|^2 / 2, summed in any order, from rounded z        1.01 (d + 2) u |z|^2 / 2
//     both: beta_c; int to float, s_z, s_y, + beta_c; E, A - E, A + E; the threshold below     10 u M
// Together less than (2.02 d + 15) u M, below slack = 4 (d + 8) u M + 2^-120, the last for underflow. So a candidate is chosen
// only where its A + E >= the largest A - E of the point's candidates, less 2 slack. Rows that are not finite or too long leave
// no bounds: the caller does without the filter.
#pragma once

#include "byte_rows.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Candidates of a byte tile; arrays of candidates are filled up to a multiple.
constexpr Index kByteTile = 8;

enum class ByteScore { product, distance };

/// Candidates as bytes, and the largest of the numbers that enter M.
struct ByteCandidates {
  ByteScore kind;
  Index d;
  const float* centre;
  float base;                           // what X and C hold beside a row's own: |m|, or 0 for distances
  std::int8_t* bytes;                   // [rows][byte_pitch(d)]
  float *scale, *shift, *size, *error;  // s, beta, |z|, |e|
  std::int32_t* start;                  // -128 times the sum of q: takes the offset of the points out again
  float longest = 0;                    // C or Z
  float highest = 0;                    // B
};

/// Memory for `capacity` candidates that are still to be set. Slots [slot, slot + 2).
inline ByteCandidates byte_candidates(ByteScore kind, const float* centre, Index capacity, Index d, Context& context,
                                      int slot) {
  const float centre_size = norm_bound(static_cast<float>(squared_norm(centre, d)), d);
  const Index padded = round_up(capacity, kByteTile);
  auto* bytes = scratch<std::int8_t>(context, slot, padded * byte_pitch(d));
  auto* numbers = scratch<float>(context, slot + 1, 5 * padded);
  return {.kind = kind,
          .d = d,
          .centre = centre,
          .base = kind == ByteScore::product ? centre_size : 0,
          .bytes = bytes,
          .scale = numbers,
          .shift = numbers + padded,
          .size = numbers + 2 * padded,
          .error = numbers + 3 * padded,
          .start = reinterpret_cast<std::int32_t*>(numbers + 4 * padded)};
}

/// The same around a mean of `rows` rows. Slots [slot, slot + 3).
inline ByteCandidates byte_candidates(ByteScore kind, const float* data, Index stride, Index rows, Index capacity, Index d,
                                      Context& context, int slot) {
  auto* centre = scratch<float>(context, slot, d);
  mean_of(data, stride, rows, d, centre);
  return byte_candidates(kind, centre, capacity, d, context, slot + 1);
}

/// Sets candidate i; `bias` is that of products. False where it cannot be used.
inline bool set_candidate(ByteCandidates& set, Index i, const float* row, float bias = 0) {
  const ByteRow own = to_bytes(row, set.centre, set.d, 0, reinterpret_cast<std::uint8_t*>(set.bytes) + i * byte_pitch(set.d));
  set.scale[i] = own.scale;
  set.shift[i] = set.kind == ByteScore::product ? own.along + bias : -own.norm2 / 2;
  set.size[i] = own.size;
  set.error[i] = own.error;
  set.start[i] = -128 * own.sum;
  const float length = set.base + own.size + own.error;
  const float height = __builtin_fabsf(set.shift[i]) + __builtin_fabsf(bias);
  if (!(length < kByteLimit) || !(height < kByteLimit * kByteLimit)) return false;
  set.longest = length > set.longest ? length : set.longest;
  set.highest = height > set.highest ? height : set.highest;
  return true;
}

/// Up to kStrip points side by side, one a lane: [column / 4][lane][column % 4] of q + 128, and the bounds so far.
struct ByteStrip {
  const std::uint8_t* bytes;
  Vec scale[2], reach[2], error[2];   // s; |y| + |e|; |e|
  Vec slack[2];                       // twice that of the derivation
  Vec highest[2];                     // the largest lower bound of a candidate seen
  Index lanes;                        // that hold a point
  Index begin, end;                   // candidates that any point sees
  Index all_begin, all_end;           // candidates that every point sees, but for these:
  Index self_begin, self_end;         // candidates that one of the points does not see for `self`
  IntVec first[2], last[2], self[2];  // of each point: first <= c < last, c != self
};

/// The numbers of one point; false where it cannot be used.
inline bool set_lane(const ByteCandidates& set, Index lane, float scale, float size, float error, ByteStrip& strip) {
  const Index v = lane / W, i = lane % W;
  strip.scale[v][i] = scale;
  strip.reach[v][i] = size + error;
  strip.error[v][i] = error;
  const float length = set.base + size + error, both = length + set.longest;
  const float bound = set.kind == ByteScore::product ? 2 * length * set.longest + set.highest : both * both;
  strip.slack[v][i] = bound * static_cast<float>(set.d + 8) * 0x1p-21f + 0x1p-119f;
  return length < kByteLimit;
}

/// Points as a strip in `bytes`; false where one cannot be used. What they see is left to the caller; the rest: see pack_bytes.
inline bool set_points(const ByteCandidates& set, const float* const* points, std::uint8_t* rows, std::uint8_t* bytes,
                       ByteStrip& strip) {
  bool usable = true;
  pack_bytes(points, set.centre, set.d, rows, bytes, [&](Index lane, const ByteRow& own) {
    usable = set_lane(set, lane, own.scale, own.size, own.error, strip) && usable;
  });
  strip.bytes = bytes;
  for (int v = 0; v < 2; ++v) strip.highest[v] = broadcast(-kInfinity);
  return usable;
}

/// acc[r] = <q of row r, q of each lane of the strip>, exact: rows of signed bytes `pitch` apart, a strip of q + 128 as in
/// ByteStrip, start[r] = -128 times the sum of row r.
[[gnu::target("avx512vnni"), gnu::always_inline]] inline void byte_dots(const std::int8_t* rows, Index pitch,
                                                                        const std::int32_t* start, const std::uint8_t* strip,
                                                                        Index d, __m512i (&acc)[kByteTile][2]) {
  const Index quads = (d + 3) / 4;
#pragma GCC unroll 8
  for (int r = 0; r < kByteTile; ++r) acc[r][0] = acc[r][1] = _mm512_set1_epi32(start[r]);
#pragma GCC unroll 2
  for (Index c = 0; c < quads; ++c) {
    const __m512i s0 = _mm512_load_si512(strip + c * 4 * kStrip);
    const __m512i s1 = _mm512_load_si512(strip + c * 4 * kStrip + 64);
#pragma GCC unroll 8
    for (int r = 0; r < kByteTile; ++r) {
      const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const UnalignedInt*>(rows + r * pitch + 4 * c));
      acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], s0, x);
      acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], s1, x);
    }
  }
}

/// Upper bounds [kByteTile][kStrip] of the candidates from `candidate` on; raises strip.highest. Masked: candidates that a
/// point does not see have the bound -inf.
template <bool Masked>
[[gnu::target("avx512vnni"), gnu::noinline]] void byte_tile(const ByteCandidates& set, Index candidate, ByteStrip& strip,
                                                            float* upper) {
  const Index pitch = byte_pitch(set.d);
  __m512i acc[kByteTile][2];
  byte_dots(set.bytes + candidate * pitch, pitch, set.start + candidate, strip.bytes, set.d, acc);
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

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
