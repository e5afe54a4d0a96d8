// SPDX-License-Identifier: Apache-2.0
// Points of a repeated best match, which stay converted to 8-bit integers from one call to the next.
#pragma once

#include "int8_search.hpp"
#include "match_state.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

static_assert(W == kMatchStatePitch);

/// Converts all points; state.usable tells whether each of them can be used.
inline void keep_points(MatchState& state, const HostMatrix<const float>& points) {
  const Index n = points.rows, d = points.cols;
  mean_of(points.data, points.stride, n, d, state.centre);
  bool usable = true;
  for (Index i = 0; i < n; ++i) {
    const Int8Row own = to_int8(points.data + i * points.stride, state.centre, d, 128, state.rows + i * int8_pitch(d));
    state.scale[i] = own.scale;
    state.size[i] = own.size;
    state.error[i] = own.error;
    usable = usable && own.size < kInt8Limit;
  }
  state.usable = usable;
}

/// set_points() for points that are kept: point(lane) is the number of each.
template <class Point>
inline bool set_kept_points(const Int8Candidates& set, const MatchState& state, Point point, std::uint8_t* out,
                            Int8Strip& strip) {
  bool usable = true;
  const std::uint8_t* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) {
    const Index i = point(lane);
    usable = set_lane(set, lane, state.scale[i], state.size[i], state.error[i], strip) && usable;
    rows[lane] = state.rows + i * int8_pitch(set.d);
  }
  pack_int8(rows, set.d, out);
  start_strip(out, strip);
  return usable;
}

/// Raises strip.highest to the lower bound of one candidate per point: point(lane) and candidate(lane) are their
/// numbers.
template <class Point, class Candidate>
[[gnu::target("avx512vnni")]] inline void raise_to_own(const Int8Candidates& set, const MatchState& state, Point point,
                                                       Candidate candidate, Int8Strip& strip) {
  const Index pitch = int8_pitch(set.d);
  alignas(64) std::int32_t products[kStrip];
  alignas(64) float scale[kStrip], shift[kStrip], size[kStrip], error[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) {
    const Index c = candidate(lane);
    const std::uint8_t* y = state.rows + point(lane) * pitch;
    const std::int8_t* z = set.rows + c * pitch;
    __m512i acc = _mm512_setzero_si512();
    for (Index k = 0; k < pitch; k += 64) {
      const __mmask64 mask = pitch - k >= 64 ? ~__mmask64{0} : (__mmask64{1} << (pitch - k)) - 1;
      acc = _mm512_dpbusd_epi32(acc, _mm512_maskz_loadu_epi8(mask, y + k), _mm512_maskz_loadu_epi8(mask, z + k));
    }
    products[lane] = sum(IntVec(acc)) + set.start[c];
    scale[lane] = set.scale[c];
    shift[lane] = set.shift[c];
    size[lane] = set.size[c];
    error[lane] = set.error[c];
  }
  for (int v = 0; v < 2; ++v) {  // as in bound_scores()
    const Vec product = __builtin_convertvector(load(products + v * W), Vec) * load(scale + v * W);
    const Vec middle = fma(product, strip.scale[v], load(shift + v * W));
    const Vec width = fma(strip.error[v], load(size + v * W), strip.reach[v] * load(error + v * W));
    strip.highest[v] = max(strip.highest[v], middle - width);
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
