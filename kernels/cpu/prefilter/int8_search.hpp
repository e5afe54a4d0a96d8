// SPDX-License-Identifier: Apache-2.0
// The candidates of each point that remain after the bounds of int8_bounds.hpp, and their scores in fp32.
#pragma once

#include "int8_bounds.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Strips that share the panels of candidates.
constexpr Index kSearchStrips = 8;

/// A candidate that may be the best one of a point: lane point % kStrip of strip point / kStrip of the group.
struct Survivor {
  std::int32_t point, candidate;
  float upper;
};

/// The state of the searches of one operation. Slots [8, 16) of the workspace.
struct Int8Search {
  Int8Candidates candidates;
  Index panel;                  // candidates that stay in the cache while the strips of a group pass
  std::uint8_t *rows, *points;  // one strip before it is packed; the packed strips of a group
  float* upper;                 // [panel][kStrip]
  Survivor* survivors;
  Index count;   // survivors of the group
  float* pairs;  // two strips of fp32
};

/// More survivors would cost more than the prefilter saves. There is room for one more per point.
constexpr Index kMostSurvivors = 64 * kSearchStrips * kStrip;

inline Int8Search int8_search(const Int8Candidates& candidates, Context& context) {
  const Index d = candidates.d;
  const Index strip = kStrip * int8_pitch(d), panel = round_up(clamp((1 << 17) / int8_pitch(d), 1, 1024), kBoundRows);
  return {.candidates = candidates,
          .panel = panel,
          .rows = scratch<std::uint8_t>(context, 11, strip),
          .points = scratch<std::uint8_t>(context, 12, kSearchStrips * strip),
          .upper = scratch<float>(context, 13, panel * kStrip),
          .survivors = scratch<Survivor>(context, 14, kMostSurvivors + kSearchStrips * kStrip),
          .count = 0,
          .pairs = scratch<float>(context, 15, 2 * kStrip * d)};
}

/// Candidates around a mean of `data`.
inline Int8Search int8_search(Int8Score kind, const HostMatrix<const float>& data, Index capacity, Context& context) {
  return int8_search(int8_candidates(kind, data, capacity, context, 8), context);
}

/// What an upper bound must reach; +inf while no candidate has been bounded.
inline Vec threshold(const Int8Strip& strip, int v) {
  return select(strip.highest[v] > broadcast(-kInfinity), strip.highest[v] - strip.slack[v], broadcast(kInfinity));
}

/// Appends the candidates [candidate, candidate + rows) that can still be the best, in increasing order for each point.
/// False where they are too many.
inline bool collect(Int8Search& search, const Int8Strip& strip, Index number, Index candidate, Index rows) {
  const auto low = __m512(threshold(strip, 0)), high = __m512(threshold(strip, 1));
  const std::uint32_t live = strip.lanes < kStrip ? (std::uint32_t{1} << strip.lanes) - 1 : ~std::uint32_t{0};
  for (Index r = 0; r < rows; ++r) {
    const float* upper = search.upper + r * kStrip;
    const std::uint32_t kept =
        live & (_mm512_cmp_ps_mask(_mm512_load_ps(upper), low, _CMP_GE_OQ) |
                std::uint32_t{_mm512_cmp_ps_mask(_mm512_load_ps(upper + W), high, _CMP_GE_OQ)} << W);
    if (kept == 0) continue;
    if (search.count + kStrip > kMostSurvivors) return false;
    for (std::uint32_t rest = kept; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      search.survivors[search.count++] = {.point = static_cast<std::int32_t>(number * kStrip + lane),
                                          .candidate = static_cast<std::int32_t>(candidate + r),
                                          .upper = upper[lane]};
    }
  }
  return true;
}

/// Bounds candidates [begin, end) for strip `number` of the group; begin is a multiple of kBoundRows. False where too
/// many remain.
inline bool bound_panel(Int8Search& search, Int8Strip& strip, Index number, Index begin, Index end) {
  begin = max(begin, strip.begin / kBoundRows * kBoundRows);
  end = min(end, strip.end);
  for (Index c = begin; c < end; c += kBoundRows) {
    float* upper = search.upper + (c - begin) * kStrip;
    const bool self = c < strip.self_end && c + kBoundRows > strip.self_begin;
    if (self || c < strip.all_begin || c + kBoundRows > strip.all_end)
      bound_scores<true>(search.candidates, c, strip, upper);
    else
      bound_scores<false>(search.candidates, c, strip, upper);
  }
  return collect(search, strip, number, begin, end - begin);
}

/// Drops the survivors that are below thresholds raised since they were found.
inline void prune(Int8Search& search, const Int8Strip* strips) {
  Index kept = 0;
  for (Index i = 0; i < search.count; ++i) {
    const Survivor& s = search.survivors[i];
    const Int8Strip& strip = strips[s.point / kStrip];
    const int v = s.point / W % 2, lane = s.point % W;
    if (s.upper >= strip.highest[v][lane] - strip.slack[v][lane]) search.survivors[kept++] = s;
  }
  search.count = kept;
}

/// Finds the survivors of up to kSearchStrips strips; false where they are too many.
inline bool find_survivors(Int8Search& search, Int8Strip* strips, Index count) {
  Index begin = strips[0].begin, end = strips[0].end;
  for (Index s = 1; s < count; ++s) {
    begin = min(begin, strips[s].begin);
    end = max(end, strips[s].end);
  }
  search.count = 0;
  for (begin = begin / kBoundRows * kBoundRows; begin < end; begin += search.panel) {
    for (Index s = 0; s < count; ++s)
      if (!bound_panel(search, strips[s], s, begin, begin + search.panel)) return false;
    prune(search, strips);
  }
  return true;
}

/// Calls f(survivor, score) for all survivors in order. point(i) and candidate(i) return rows;
/// pairs(points, candidates, strips, scores) computes kStrip scores.
template <class Point, class Candidate, class Pairs, class F>
inline void score_survivors(const Int8Search& search, Point point, Candidate candidate, Pairs pairs, F f) {
  for (Index first = 0; first < search.count; first += kStrip) {
    const float *points[kStrip], *candidates[kStrip];
    for (Index lane = 0; lane < kStrip; ++lane) {
      const Survivor& s = search.survivors[min(first + lane, search.count - 1)];
      points[lane] = point(s.point);
      candidates[lane] = candidate(s.candidate);
    }
    alignas(64) float scores[kStrip];
    pairs(points, candidates, search.pairs, scores);
    for (Index i = first; i < min(first + kStrip, search.count); ++i) f(search.survivors[i], scores[i - first]);
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
