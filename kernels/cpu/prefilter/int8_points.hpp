// SPDX-License-Identifier: Apache-2.0
// Points of a repeated best match, which stay converted to 8-bit integers from one call to the next.
#pragma once

#include "int8_search.hpp"
#include "match_state.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

static_assert(kMatchStatePitch % W == 0);

/// Converts all points; state.usable tells whether each of them can be used.
inline void keep_points(MatchState& state, const HostMatrix<const float>& points) {
  const Index n = points.rows, d = points.cols;
  mean_of(points.data, points.stride, n, d, state.centre);
  const auto centre_norm2 = static_cast<float>(squared_norm(state.centre, d));
  bool usable = true;
  for (Index i = 0; i < n; ++i) {
    const Int8Row own =
        to_int8(points.data + i * points.stride, state.centre, d, kPointOffset, state.rows + i * int8_pitch(d));
    state.scale[i] = own.scale;
    state.size[i] = own.size;
    state.error[i] = own.error;
    state.frame[i] = frame_of(Int8Score::product, own, centre_norm2);
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
    usable = set_lane(set, lane, {state.scale[i], state.size[i], state.error[i], state.frame[i]}, strip) && usable;
    rows[lane] = state.rows + i * int8_pitch(set.d);
  }
  pack_int8(rows, set.d, out);
  strip.points = out;
  return usable;
}

/// Not above the score of a candidate for a point that is kept, less the frame.
inline float lower_bound(const Int8Candidates& set, const MatchState& state, Index point, Index candidate) {
  const std::uint8_t* y = state.rows + point * int8_pitch(set.d);
  const std::int8_t* z = set.rows + candidate * int8_pitch(set.d);
  std::int32_t product = 0;
  for (Index c = 0; c < set.d; ++c) product += (y[c] - kPointOffset) * z[c];
  const Int8Numbers& own = set.numbers[candidate];
  const float middle = static_cast<float>(product) * own.scale * state.scale[point] + own.shift;
  return middle - (state.error[point] * own.size + (state.size[point] + state.error[point]) * own.error);
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
