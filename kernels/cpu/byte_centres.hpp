// SPDX-License-Identifier: Apache-2.0
// Greedy k-center on bytes: a new centre can only lower the distances of points near it, and products of bytes show which these
// may be. A pass reads a quarter of what fp32 does.
//
// With y = s q + e of a point and z of the centre (byte_rows.hpp), |y - z| >= |s_y q_y - s_z q_z| - |e_y| - |e_z|. A point
// keeps its fp32 distance `nearest` where
//     |s_y q_y|^2 + |s_z q_z|^2 - 2 s_y s_z <q_y, q_z> >= (sqrt(nearest) + |e_y| + |e_z|)^2,
// since the new distance is not less then. Roundings, u = 2^-24: those of the left side are below (d + 8) u times the sum of
// the two squares, which `kept` lowers by 4 (d + 64) u. The fp32 distance, a chain of d subtractions and FMAs, is not less than
// the exact one by more than 1.01 (d + 3) u of it; `raised` lifts its root by 2 (d + 32) u and `lifted` the errors by 16 u,
// which covers that and the roundings of the right side. Underflow is below the 2^-60 that errors hold.
#pragma once

#include "byte_rows.hpp"
#include "distance_tile.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Strips of a step of a pass: enough sums to hide the latency of their instructions.
constexpr Index kByteStrips = 4;

/// Points as bytes, kStrip side by side, with what a pass reads of each. Slots [8, 16) of the workspace.
struct ByteCentres {
  const float* data;
  Index stride, rows, padded, d;
  const std::int32_t* points;  // [rows] which rows of the data they are
  const float* centre;         // the common one, of the rows
  std::uint8_t* bytes;         // [padded / kStrip][column / 4][kStrip][column % 4]
  std::int8_t* row;            // of the centre of a pass
  float *scale, *norm2;        // s; |s q|^2, lowered; +inf where the point is out of the search
  float *error, *bound;        // |e|; sqrt(nearest) + |e|, both lifted
  std::int32_t* changed;       // points that a pass may change
  float* strip;                // fp32

  const float* row_of(Index i) const { return data + points[i] * stride; }
};

inline float lifted(float error) { return error * (1 + 0x1p-20f); }
inline float kept(float norm2, Index d) { return norm2 * (1 - static_cast<float>(d + 64) * 0x1p-22f); }
inline float raised(float nearest, Index d) { return __builtin_sqrtf(nearest) * (1 + static_cast<float>(d + 32) * 0x1p-23f); }

/// Makes bytes of the points, which hold the distances `nearest`; false where one cannot be used. `rows`: kStrip *
/// byte_pitch(d).
inline bool set_rows(ByteCentres& set, const float* nearest, std::uint8_t* rows) {
  bool usable = true;
  for (Index first = 0; first < set.padded && usable; first += kStrip) {
    const float* points[kStrip];
    for (Index lane = 0; lane < kStrip; ++lane) points[lane] = set.row_of(min(first + lane, set.rows - 1));
    std::uint8_t* bytes = set.bytes + first * byte_pitch(set.d);
    pack_bytes(points, set.centre, set.d, rows, bytes, [&](Index lane, const ByteRow& own) {
      const Index i = first + lane;
      set.scale[i] = own.scale;
      set.norm2[i] = i < set.rows ? kept(own.scale * own.scale * own.squares, set.d) : kInfinity;
      set.error[i] = lifted(own.error);
      set.bound[i] = i < set.rows ? raised(nearest[i], set.d) + set.error[i] : 0;
      usable = usable && own.size < kByteLimit;
    });
  }
  return usable;
}

/// `padded`: rows, rounded up to a multiple of kByteStrips * kStrip.
inline ByteCentres byte_centres(const float* data, Index stride, const std::int32_t* points, Index rows, Index padded, Index d,
                                const float* centre, Context& context) {
  const Index pitch = byte_pitch(d);
  auto* numbers = scratch<float>(context, 10, 4 * padded);
  return {.data = data,
          .stride = stride,
          .rows = rows,
          .padded = padded,
          .d = d,
          .points = points,
          .centre = centre,
          .bytes = scratch<std::uint8_t>(context, 9, padded * pitch),
          .row = scratch<std::int8_t>(context, 11, pitch),
          .scale = numbers,
          .norm2 = numbers + padded,
          .error = numbers + 2 * padded,
          .bound = numbers + 3 * padded,
          .changed = scratch<std::int32_t>(context, 12, padded + W),
          .strip = scratch<float>(context, 13, kStrip * d)};
}

/// Appends to set.changed the points of kByteStrips strips from `first` on whose distances `own`, the centre of set.row, may
/// lower; returns how many there are then.
[[gnu::target("avx512vnni"), gnu::noinline]] Index find_changed(const ByteCentres& set, const ByteRow& own, Index first,
                                                                Index count) {
  constexpr Index vectors = 2 * kByteStrips;
  const Index pitch = byte_pitch(set.d), quads = (set.d + 3) / 4;
  const std::uint8_t* bytes = set.bytes + first * pitch;
  __m512i acc[vectors];
#pragma GCC unroll 8
  for (Index v = 0; v < vectors; ++v) acc[v] = _mm512_set1_epi32(-128 * own.sum);
  for (Index c = 0; c < quads; ++c) {
    const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const UnalignedInt*>(set.row + 4 * c));
#pragma GCC unroll 8
    for (Index v = 0; v < vectors; ++v)
      acc[v] = _mm512_dpbusd_epi32(acc[v], _mm512_load_si512(bytes + v / 2 * kStrip * pitch + c * 4 * kStrip + v % 2 * 64), x);
  }
  const Vec norm2 = broadcast(kept(own.scale * own.scale * own.squares, set.d));
  const Vec scale = broadcast(-2 * own.scale), error = broadcast(lifted(own.error));
#pragma GCC unroll 8
  for (Index v = 0; v < vectors; ++v) {
    const Index i = first + v * W;
    const Vec product = __builtin_convertvector(IntVec(acc[v]), Vec) * load(set.scale + i);
    const Vec distance = fma(product, scale, load(set.norm2 + i) + norm2);
    const Vec limit = load(set.bound + i) + error;
    const __mmask16 changed = _mm512_cmp_ps_mask(__m512(distance), __m512(limit * limit), _CMP_LT_OQ);
    if (changed != 0) count += compress(lane_numbers(i), changed, set.changed + count);
  }
  return count;
}

/// Lowers `nearest` by the distances to `centre`.
inline void lower(ByteCentres& set, const float* centre, float* nearest) {
  const ByteRow own = to_bytes(centre, set.centre, set.d, 0, reinterpret_cast<std::uint8_t*>(set.row));
  Index count = 0;
  for (Index first = 0; first < set.padded; first += kByteStrips * kStrip) count = find_changed(set, own, first, count);
  for (Index begin = 0; begin < count; begin += kStrip) {
    const float* rows[kStrip];
    for (Index lane = 0; lane < kStrip; ++lane) rows[lane] = set.row_of(set.changed[min(begin + lane, count - 1)]);
    pack_strip(rows, set.d, set.strip);
    alignas(64) float distances[kStrip];
    Vec acc[1][2];
    distance_strips(centre, set.strip, set.d, acc);
    write_strip(acc[0], kStrip, distances);
    for (Index lane = 0; lane < min(count - begin, Index{kStrip}); ++lane) {
      const Index i = set.changed[begin + lane];
      if (!(distances[lane] < nearest[i])) continue;
      nearest[i] = distances[lane];
      set.bound[i] = raised(distances[lane], set.d) + set.error[i];
    }
  }
}

/// Takes a point out of the search.
inline void take(ByteCentres& set, Index point) { set.norm2[point] = kInfinity; }

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
