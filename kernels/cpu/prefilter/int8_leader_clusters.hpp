// SPDX-License-Identifier: Apache-2.0
// Nearest representatives with the bounds of int8_bounds.hpp.
#pragma once

#include "../distance_tile.hpp"
#include "int8_search.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// For the interface see NoLeaderPrefilter.
class Int8LeaderPrefilter {
 public:
  static constexpr Index kMostPoints = kSearchStrips * kStrip;

  Int8LeaderPrefilter(const LeaderClusters<HostMatrix>& op, Context& context) : op_(op), context_(context) {}

  template <class F>
  bool find_nearest(Index begin, Index points, Index count, F f) {
    const bool pays = count * op_.points.cols >= 2048 && op_.points.rows >= kMostPoints;  // measured
    if (!wants_prefilter(context_, pays, op_.points.cols) || !convert(count)) return false;
    Int8Strip strips[kSearchStrips] = {};
    if (!set_strips(begin, points, count, strips)) return false;
    const auto score = [&](Index i, Index c) {
      return rough_nearness(point(begin + i), representative(c), op_.points.cols);
    };
    if (!find_survivors(search_, strips, (points + kStrip - 1) / kStrip, score)) return false;
    score_survivors(
        search_, [&](Index i) { return point(begin + i); }, [&](Index i) { return representative(i); },
        [&](auto rows, auto representatives, float* packed, float* out) {
          pair_distances(rows, representatives, op_.points.cols, packed, out);
        },
        [&](const Survivor& s, float distance) { f(s.point, s.candidate, distance); });
    return true;
  }

 private:
  const float* point(Index i) const { return op_.points.data + i * op_.points.stride; }
  const float* representative(Index i) const { return op_.representatives.data + i * op_.representatives.stride; }

  /// Converts the representatives below `count` that have not been converted yet; false where one of them cannot be
  /// used.
  bool convert(Index count) {
    if (converted_ < 0) {
      search_ = int8_search(Int8Score::distance, op_.points, op_.representatives.rows, context_);
      converted_ = 0;
    }
    for (; converted_ < count && usable_; ++converted_)
      usable_ = set_candidate(search_.candidates, converted_, representative(converted_));
    return usable_;
  }

  /// Points [begin, begin + points) as strips whose candidates are the first `count`; false where a point cannot be
  /// used.
  bool set_strips(Index begin, Index points, Index count, Int8Strip* strips) {
    for (Index first = 0; first < points; first += kStrip) {
      const float* rows[kStrip];
      for (Index lane = 0; lane < kStrip; ++lane) rows[lane] = point(begin + min(first + lane, points - 1));
      Int8Strip& strip = strips[first / kStrip];
      strip.lanes = min(points - first, Index{kStrip});
      strip.end = strip.all_end = count;
      for (int v = 0; v < 2; ++v) {
        strip.last[v] = broadcast(static_cast<std::int32_t>(count));
        strip.self[v] = broadcast(std::int32_t{-1});
      }
      std::uint8_t* packed = search_.points + first * int8_pitch(op_.points.cols);
      if (!set_points(search_.candidates, rows, search_.rows, packed, strip)) return false;
    }
    return true;
  }

  const LeaderClusters<HostMatrix>& op_;
  Context& context_;
  Int8Search search_ = {};
  Index converted_ = -1;  // representatives; -1: nothing has been allocated
  bool usable_ = true;
};

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
