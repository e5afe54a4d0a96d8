// SPDX-License-Identifier: Apache-2.0
// Bounds of scores from products of 8-bit integers, for searches of the candidate c with the largest score for a point
// x. They cost a quarter of fp32 scores and leave few candidates per point; only these are then scored exactly as
// without a prefilter. The remaining candidates include every one that the full search could have chosen, ties
// included, so the results are identical.
//
// With m any vector (a mean, so that differences are short), y = x - m and z = c - m,
//     products    <x, c> + b_c = <x, m> + <y, z> + beta_c,                    beta_c = <m, z> + b_c
//     distances   -|x - c|^2 / 2 = -|y|^2 / 2 + <y, z> + beta_c,              beta_c = -|z|^2 / 2
// and the first term is the same for all candidates. With y = s q + e and z likewise (int8_rows.hpp),
//     |<y, z> - s_y s_z <q_y, q_z>| = |<s_y q_y, e_z> + <e_y, z>| <= (|y| + |e_y|) |e_z| + |e_y| |z|,
// and <q_y, q_z> is exact. With A = s_y s_z <q_y, q_z> + beta_c and E the right side above, A - E and A + E enclose the
// score less that first term, except for roundings, each a multiple of u = 2^-24 of a bound M of the numbers involved:
//     products    M = 2 X C + B with X = |m| + |y| + |e_y|, C = the largest |m| + |z| + |e_z|, B = the largest |beta_c|
//                 + |b_c|
//       the chain of d FMAs of the full search, and + b_c     1.01 d u |x| |c| + u M
//       <m, z>, summed in any order, from rounded z           1.01 d u |m| |z| + u |m| |z|
//     distances   M = (Y + Z)^2 with Y = |y| + |e_y|, Z = the largest |z| + |e_z|
//       the chain of d subtractions and FMAs, halved          1.01 (d + 3) u |x - c|^2 / 2
//       |z|^2 / 2, summed in any order, from rounded z        1.01 (d + 2) u |z|^2 / 2
//     both: beta_c; int to float, s_z, s_y, + beta_c; E, A - E, A + E; the threshold below     10 u M
// Together these are less than (2.02 d + 15) u M, which is below slack = 4 (d + 8) u M + 2^-120; 2^-120 covers
// underflow. So a candidate can be chosen only if its A + E >= the largest A - E of the point's candidates, less 2
// slack. Rows that are not finite or too long have no bounds: the caller then searches without the prefilter.
#pragma once

#include "int8_rows.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Candidates whose bounds are computed together; arrays of candidates are padded to a multiple.
constexpr Index kBoundRows = 8;

enum class Int8Score { product, distance };

/// Candidates as 8-bit integers, and the largest of the numbers that enter M.
struct Int8Candidates {
  Int8Score kind;
  Index d;
  const float* centre;
  float base;                           // the part of X and C that no row changes: |m|, or 0 for distances
  std::int8_t* rows;                    // [candidates][int8_pitch(d)]
  float *scale, *shift, *size, *error;  // s, beta, |z|, |e|
  std::int32_t* start;                  // -128 times the sum of q, which cancels the offset of the points
  float longest = 0;                    // C or Z
  float highest = 0;                    // B
};

/// Memory for `capacity` candidates that are yet to be set. Slots [slot, slot + 2).
inline Int8Candidates int8_candidates(Int8Score kind, const float* centre, Index capacity, Index d, Context& context,
                                      int slot) {
  const float centre_size = norm_bound(static_cast<float>(squared_norm(centre, d)), d);
  const Index padded = round_up(capacity, kBoundRows);
  auto* rows = scratch<std::int8_t>(context, slot, padded * int8_pitch(d));
  auto* numbers = scratch<float>(context, slot + 1, 5 * padded);
  return {.kind = kind,
          .d = d,
          .centre = centre,
          .base = kind == Int8Score::product ? centre_size : 0,
          .rows = rows,
          .scale = numbers,
          .shift = numbers + padded,
          .size = numbers + 2 * padded,
          .error = numbers + 3 * padded,
          .start = reinterpret_cast<std::int32_t*>(numbers + 4 * padded)};
}

/// The same around a mean of `data`. Slots [slot, slot + 3).
inline Int8Candidates int8_candidates(Int8Score kind, const HostMatrix<const float>& data, Index capacity,
                                      Context& context, int slot) {
  auto* centre = scratch<float>(context, slot, data.cols);
  mean_of(data.data, data.stride, data.rows, data.cols, centre);
  return int8_candidates(kind, centre, capacity, data.cols, context, slot + 1);
}

/// Sets candidate i; `bias` is that of products. False where it cannot be used.
inline bool set_candidate(Int8Candidates& set, Index i, const float* row, float bias = 0) {
  auto* out = reinterpret_cast<std::uint8_t*>(set.rows) + i * int8_pitch(set.d);
  const Int8Row own = to_int8(row, set.centre, set.d, 0, out);
  set.scale[i] = own.scale;
  set.shift[i] = set.kind == Int8Score::product ? own.along + bias : -own.norm2 / 2;
  set.size[i] = own.size;
  set.error[i] = own.error;
  set.start[i] = -128 * own.sum;
  const float length = set.base + own.size + own.error;
  const float height = __builtin_fabsf(set.shift[i]) + __builtin_fabsf(bias);
  if (!(length < kInt8Limit) || !(height < kInt8Limit * kInt8Limit)) return false;
  set.longest = length > set.longest ? length : set.longest;
  set.highest = height > set.highest ? height : set.highest;
  return true;
}

/// Up to kStrip points, one per lane, packed by pack_int8() as q + 128, and the bounds so far.
struct Int8Strip {
  const std::uint8_t* points;
  Vec scale[2], reach[2], error[2];   // s; |y| + |e|; |e|
  Vec slack[2];                       // twice that of the derivation
  Vec highest[2];                     // the largest lower bound of the candidates so far
  Index lanes;                        // that hold a point
  Index begin, end;                   // candidates of any of the points
  Index all_begin, all_end;           // candidates of all of the points, except for these:
  Index self_begin, self_end;         // candidates that are the point itself for one of the points
  IntVec first[2], last[2], self[2];  // the candidates of each point: first <= c < last, c != self
};

/// The numbers of one point; false where it cannot be used.
inline bool set_lane(const Int8Candidates& set, Index lane, float scale, float size, float error, Int8Strip& strip) {
  const Index v = lane / W, i = lane % W;
  strip.scale[v][i] = scale;
  strip.reach[v][i] = size + error;
  strip.error[v][i] = error;
  const float length = set.base + size + error, both = length + set.longest;
  const float bound = set.kind == Int8Score::product ? 2 * length * set.longest + set.highest : both * both;
  strip.slack[v][i] = bound * static_cast<float>(set.d + 8) * 0x1p-21f + 0x1p-119f;
  return length < kInt8Limit;
}

/// `out` holds the packed points, all lanes are set: no candidate has been bounded so far.
inline void start_strip(const std::uint8_t* out, Int8Strip& strip) {
  strip.points = out;
  for (int v = 0; v < 2; ++v) strip.highest[v] = broadcast(-kInfinity);
}

/// Converts and packs points; false where one of them cannot be used. The candidates of the points are set by the
/// caller; for the other arguments see pack_as_int8().
inline bool set_points(const Int8Candidates& set, const float* const* points, std::uint8_t* rows, std::uint8_t* out,
                       Int8Strip& strip) {
  bool usable = true;
  pack_as_int8(points, set.centre, set.d, rows, out, [&](Index lane, const Int8Row& own) {
    usable = set_lane(set, lane, own.scale, own.size, own.error, strip) && usable;
  });
  start_strip(out, strip);
  return usable;
}

/// acc[r] = <q of row r, q of each lane of the strip>, exact: rows of signed bytes `pitch` apart, a strip of q + 128 as
/// in Int8Strip, start[r] = -128 times the sum of row r.
[[gnu::target("avx512vnni"), gnu::always_inline]] inline void int8_products(const std::int8_t* rows, Index pitch,
                                                                            const std::int32_t* start,
                                                                            const std::uint8_t* strip, Index d,
                                                                            __m512i (&acc)[kBoundRows][2]) {
  const Index quads = (d + 3) / 4;
#pragma GCC unroll 8
  for (int r = 0; r < kBoundRows; ++r) acc[r][0] = acc[r][1] = _mm512_set1_epi32(start[r]);
#pragma GCC unroll 2
  for (Index c = 0; c < quads; ++c) {
    const __m512i s0 = _mm512_load_si512(strip + c * 4 * kStrip);
    const __m512i s1 = _mm512_load_si512(strip + c * 4 * kStrip + 64);
#pragma GCC unroll 8
    for (int r = 0; r < kBoundRows; ++r) {
      const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const UnalignedInt*>(rows + r * pitch + 4 * c));
      acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], s0, x);
      acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], s1, x);
    }
  }
}

/// Computes the upper bounds [kBoundRows][kStrip] of the candidates from `candidate` on, and raises strip.highest.
/// Masked: a candidate that is none of a point's has the bound -inf there.
template <bool Masked>
[[gnu::target("avx512vnni"), gnu::noinline]] void bound_scores(const Int8Candidates& set, Index candidate,
                                                               Int8Strip& strip, float* upper) {
  const Index pitch = int8_pitch(set.d);
  __m512i acc[kBoundRows][2];
  int8_products(set.rows + candidate * pitch, pitch, set.start + candidate, strip.points, set.d, acc);
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Vec highest = strip.highest[v];
#pragma GCC unroll 8
    for (int r = 0; r < kBoundRows; ++r) {
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
