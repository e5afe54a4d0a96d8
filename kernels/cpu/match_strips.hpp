// SPDX-License-Identifier: Apache-2.0
// Points of a best match, a few neighbouring ones at a time.
#pragma once

#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

using Match = BestMatch<HostMatrix>;

/// Strips for which a cached panel of candidates is read.
constexpr Index kMatchGroup = 8;

/// Points by their numbers; without `numbers` the first `count`.
struct PointList {
  const std::int32_t* numbers;
  Index count;
  Index operator[](Index i) const { return numbers == nullptr ? i : numbers[i]; }
};

/// Up to kStrip consecutive points of a list, one per lane, and the best candidate of each so far. Lanes beyond
/// `count` repeat the first.
struct MatchStrip {
  PointList list;
  Index point, count;        // their places in the list
  Index begin, end;          // candidates of any of the points
  Index all_begin, all_end;  // candidates of all points
  IntVec first[2], last[2], self[2];
  Vec best[2];
  IntVec index[2];

  Index number(Index lane) const { return list[point + lane]; }
};

struct Range {
  Index begin, end;
};

Range range_of(const Match& op, Index point) {
  const Index begin = op.first.data == nullptr ? 0 : op.first.data[point * op.first.stride];
  const Index end = op.last.data == nullptr ? op.candidates.rows : op.last.data[point * op.last.stride];
  return {begin, max(begin, end)};
}

/// A strip of points from `point` on that have about the same candidates: the union of their ranges must not exceed the
/// longest by more than a strip.
MatchStrip next_strip(const Match& op, PointList list, Index point) {
  MatchStrip strip = {};
  const Range own = range_of(op, list[point]);
  strip.list = list;
  strip.point = point;
  strip.begin = strip.all_begin = own.begin;
  strip.end = strip.all_end = own.end;
  alignas(64) std::int32_t first[kStrip], last[kStrip], self[kStrip];
  Index longest = own.end - own.begin;
  for (Index lane = 0; lane < kStrip; ++lane) {
    const bool open = strip.count == lane && point + lane < list.count;
    const Range range = open ? range_of(op, list[point + lane]) : own;
    const Range both = {min(strip.begin, range.begin), max(strip.end, range.end)};
    longest = max(longest, range.end - range.begin);
    if (open && both.end - both.begin <= longest + kStrip) {
      ++strip.count;
      strip.begin = both.begin;
      strip.end = both.end;
      strip.all_begin = max(strip.all_begin, range.begin);
      strip.all_end = min(strip.all_end, range.end);
    }
    const bool taken = strip.count > lane;
    first[lane] = static_cast<std::int32_t>(taken ? range.begin : own.begin);
    last[lane] = static_cast<std::int32_t>(taken ? range.end : own.end);
    self[lane] = op.skip_self ? static_cast<std::int32_t>(point + (taken ? lane : 0)) : -1;
  }
  for (int v = 0; v < 2; ++v) {
    strip.first[v] = load(first + v * W);
    strip.last[v] = load(last + v * W);
    strip.self[v] = load(self + v * W);
    strip.best[v] = broadcast(-kInfinity);
    strip.index[v] = broadcast(std::int32_t{-1});
  }
  return strip;
}

void pack_points(const Match& op, const MatchStrip& strip, float* out) {
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane)
    rows[lane] = lane < strip.count ? op.points.data + strip.number(lane) * op.points.stride : nullptr;
  pack_strip(rows, op.points.cols, out);
}

void write_matches(const Match& op, const MatchStrip& strip) {
  for (Index lane = 0; lane < strip.count; ++lane) {
    const Index point = strip.number(lane);
    std::int32_t best = strip.index[lane / W][lane % W];
    if (best < 0) {  // no score above -inf: the lowest candidate, where there is one
      const Range range = range_of(op, point);
      const Index lowest = op.skip_self && range.begin == point ? point + 1 : range.begin;
      best = lowest < range.end ? static_cast<std::int32_t>(lowest) : -1;
    }
    op.best.data[point * op.best.stride] = best;
    if (op.score.data != nullptr) op.score.data[point * op.score.stride] = strip.best[lane / W][lane % W];
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
