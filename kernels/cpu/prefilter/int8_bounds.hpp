// SPDX-License-Identifier: Apache-2.0
// Bounds of scores from products of 8-bit integers, for searches of the candidate c with the largest score for a point
// x. They cost a quarter of fp32 scores or less and leave few candidates per point; these are scored in fp32 in any
// order, which leaves hardly any but the best, and only what is left then is scored as without a prefilter. It includes
// every candidate that the full search could have chosen, ties included, so the results are identical.
//
// With m any vector (a mean, so that differences are short), y = x - m and z = c - m,
//     products    <x, c> + b_c = <x, m> + <y, z> + beta_c,                    beta_c = <m, z> + b_c
//     distances   -|x - c|^2 / 2 = -|y|^2 / 2 + <y, z> + beta_c,              beta_c = -|z|^2 / 2
// and the first term, the frame of the point, is the same for all candidates. With y = s q + e and z likewise
// (int8_rows.hpp),
//     |<y, z> - s_y s_z <q_y, q_z>| = |<s_y q_y, e_z> + <e_y, z>| <= (|y| + |e_y|) |e_z| + |e_y| |z|,
// and <q_y, q_z> is exact. With A = s_y s_z <q_y, q_z> + beta_c, the middle, and E the right side above, the score less
// the frame is at most A + E. A candidate g whose fp32 score is R, in any order of its sum, excludes every c with
// A + E < R - frame - slack: the full search finds g better than c. Roundings, each a multiple of u = 2^-24 of a bound
// M of the numbers involved:
//     products    M = 2 X C + B with X = |m| + |y| + |e_y|, C = the largest |m| + |z| + |e_z|, B = the largest |beta_c|
//                 + |b_c|, so that |x| |c| <= X C <= M / 2
//       the chains of d FMAs of the full search for c and g, and + b            2 (1.01 d u |x| |c| + u M)
//       R                                                                          1.01 d u |x| |g| + u M
//       the frame <m, y> + |m|^2, summed in any order                              1.01 d u |m| (|y| + |m|) + u M
//       <m, z>, summed in any order, from rounded z                                1.01 d u |m| |z| + u |m| |z|
//     distances   M = (Y + Z)^2 with Y = |y| + |e_y|, Z = the largest |z| + |e_z|, so that |x - c| <= Y + Z
//       the chains of d subtractions and FMAs for c and g, halved               2 (1.01 (d + 3) u |x - c|^2 / 2)
//       R, likewise                                                                1.01 (d + 3) u |x - g|^2 / 2
//       |y|^2 / 2 and |z|^2 / 2, summed in any order, from rounded rows         2 (1.01 (d + 2) u max(Y, Z)^2 / 2)
//     both: beta_c; int to float, s_z, s_y, + beta_c; E; the limit R - frame - slack - E           12 u M
// Together these are less than (2.53 d + 20) u M, which is below slack = 8 (d + 8) u M + 2^-119; 2^-119 covers
// underflow. Rows that are not finite or too long have no bounds: the caller then searches without the prefilter.
#pragma once

#include "int8_rows.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

enum class Int8Score { product, distance };

/// What bounds the products of a candidate, and of a tile of candidates: the largest of its members.
struct Int8Numbers {
  float scale, shift;  // s, beta
  float size, error;   // |z|, |e|
};
struct Int8Width {
  float size, error;
};

/// Candidates as 8-bit integers, and the largest of the numbers that enter M. Tiles of kBoundRows are bounded together.
struct Int8Candidates {
  Int8Score kind;
  Index d;
  const float* centre;
  float centre_norm2;
  float base;            // the part of X and C that no row changes: |m|, or 0 for distances
  std::int8_t* rows;     // [candidates][int8_pitch(d)]
  std::int32_t* starts;  // [candidates][int8_starts(d)]
  Int8Numbers* numbers;  // [candidates]
  Int8Width* widths;     // [tiles]
  float longest = 0;     // C or Z
  float highest = 0;     // B
};

/// Memory for `capacity` candidates that are yet to be set, in increasing order. Slots [slot, slot + 2).
inline Int8Candidates int8_candidates(Int8Score kind, const float* centre, Index capacity, Index d, Context& context,
                                      int slot) {
  const auto norm2 = static_cast<float>(squared_norm(centre, d));
  const Index padded = round_up(capacity, kBoundRows), starts = padded * int8_starts(d);
  auto* const rows = scratch<std::int8_t>(context, slot, padded * int8_pitch(d));
  auto* const numbers = scratch<Int8Numbers>(context, slot + 1, 2 * padded + (starts + 3) / 4);
  return {.kind = kind,
          .d = d,
          .centre = centre,
          .centre_norm2 = norm2,
          .base = kind == Int8Score::product ? norm_bound(norm2, d) : 0,
          .rows = rows,
          .starts = reinterpret_cast<std::int32_t*>(numbers + 2 * padded),
          .numbers = numbers,
          .widths = reinterpret_cast<Int8Width*>(numbers + padded)};
}

/// The same around a mean of `data`. Slots [slot, slot + 3).
inline Int8Candidates int8_candidates(Int8Score kind, const HostMatrix<const float>& data, Index capacity,
                                      Context& context, int slot) {
  auto* centre = scratch<float>(context, slot, data.cols);
  mean_of(data.data, data.stride, data.rows, data.cols, centre);
  return int8_candidates(kind, centre, capacity, data.cols, context, slot + 1);
}

/// Sets the numbers of candidate i, whose row is set.
inline void set_numbers(Int8Candidates& set, Index i, const Int8Numbers& own) {
  set.numbers[i] = own;
  Int8Width& tile = set.widths[i / kBoundRows];
  if (i % kBoundRows == 0) tile = {0, 0};
  tile.size = own.size > tile.size ? own.size : tile.size;
  tile.error = own.error > tile.error ? own.error : tile.error;
}

/// Sets candidate i; `bias` is that of products. False where it cannot be used.
inline bool set_candidate(Int8Candidates& set, Index i, const float* row, float bias = 0) {
  auto* const out = reinterpret_cast<std::uint8_t*>(set.rows) + i * int8_pitch(set.d);
  const Int8Row own = to_int8(row, set.centre, set.d, 0, out, set.starts + i * int8_starts(set.d));
  const float shift = set.kind == Int8Score::product ? own.along + bias : -own.norm2 / 2;
  set_numbers(set, i, {.scale = own.scale, .shift = shift, .size = own.size, .error = own.error});
  const float length = set.base + own.size + own.error;
  const float height = __builtin_fabsf(shift) + __builtin_fabsf(bias);
  if (!(length < kInt8Limit) || !(height < kInt8Limit * kInt8Limit)) return false;
  set.longest = length > set.longest ? length : set.longest;
  set.highest = height > set.highest ? height : set.highest;
  return true;
}

/// What a point must be known by.
struct Int8Point {
  float scale, size, error;  // s, |y|, |e|
  float frame;
};

inline float frame_of(Int8Score kind, const Int8Row& own, float centre_norm2) {
  return kind == Int8Score::product ? own.along + centre_norm2 : -own.norm2 / 2;
}

/// Up to kStrip points, one per lane, packed by pack_int8(), and the best candidates so far.
struct Int8Strip {
  const std::uint8_t* points;
  Vec scale[2], reach[2], error[2];  // s; |y| + |e|; |e|
  Vec frame[2], slack[2];
  Vec best[2];                        // the largest fp32 score so far, less the frame; +inf in lanes without a point
  IntVec holder[2];                   // the candidate that has it; -1: none
  Index lanes;                        // that hold a point
  Index begin, end;                   // candidates of any of the points
  Index all_begin, all_end;           // candidates of all of the points, except for these:
  Index self_begin, self_end;         // candidates that are the point itself for one of the points
  IntVec first[2], last[2], self[2];  // the candidates of each point: first <= c < last, c != self
};

/// The numbers of one point; false where it cannot be used.
inline bool set_lane(const Int8Candidates& set, Index lane, const Int8Point& own, Int8Strip& strip) {
  const Index v = lane / W, i = lane % W;
  strip.scale[v][i] = own.scale;
  strip.reach[v][i] = own.size + own.error;
  strip.error[v][i] = own.error;
  strip.frame[v][i] = own.frame;
  strip.best[v][i] = lane < strip.lanes ? -kInfinity : kInfinity;
  strip.holder[v][i] = -1;
  const float length = set.base + own.size + own.error, both = length + set.longest;
  const float bound = set.kind == Int8Score::product ? 2 * length * set.longest + set.highest : both * both;
  strip.slack[v][i] = bound * static_cast<float>(set.d + 8) * 0x1p-21f + 0x1p-119f;
  return length < kInt8Limit;
}

/// Converts and packs points; false where one of them cannot be used. The lanes and candidates of the points are set by
/// the caller; for the other arguments see pack_as_int8().
inline bool set_points(const Int8Candidates& set, const float* const* points, std::uint8_t* rows, std::uint8_t* out,
                       Int8Strip& strip) {
  bool usable = true;
  pack_as_int8(points, set.centre, set.d, rows, out, [&](Index lane, const Int8Row& own) {
    const Int8Point point = {own.scale, own.size, own.error, frame_of(set.kind, own, set.centre_norm2)};
    usable = set_lane(set, lane, point, strip) && usable;
  });
  strip.points = out;
  return usable;
}

/// Computes the middles [kBoundRows][kStrip] of the candidates from `candidate` on, the first of a tile, and the
/// largest of each lane. Masked: a candidate that is none of a point's has -inf there.
template <bool Masked>
[[KVBENCH_INT8, gnu::noinline]] void bound_tile(const Int8Candidates& set, Index candidate, const Int8Strip& strip,
                                                float* middles, float* highest) {
  const Index pitch = int8_pitch(set.d);
  IntVec acc[kBoundRows][2];
  int8_products(set.rows + candidate * pitch, pitch, set.starts + candidate * int8_starts(set.d), strip.points, set.d,
                acc);
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Vec top = broadcast(-kInfinity);
#pragma GCC unroll 8
    for (int r = 0; r < kBoundRows; ++r) {
      const Int8Numbers& own = set.numbers[candidate + r];
      const Vec product = __builtin_convertvector(acc[r][v], Vec) * broadcast(own.scale);
      Vec middle = fma(product, strip.scale[v], broadcast(own.shift));
      if constexpr (Masked) {
        const IntVec c = broadcast(static_cast<std::int32_t>(candidate + r));
        const IntVec seen = (c >= strip.first[v]) & (c < strip.last[v]) & (c != strip.self[v]);
        middle = select(seen, middle, broadcast(-kInfinity));
      }
      top = max(top, middle);
      store(middles + r * kStrip + v * W, middle);
    }
    store(highest + v * W, top);
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
