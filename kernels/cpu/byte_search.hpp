// SPDX-License-Identifier: Apache-2.0
// The candidates that products of bytes leave of each point, and their scores in fp32.
#pragma once

#include "byte_products.hpp"
#include "product_tile.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Strips that share the panels of candidates.
constexpr Index kByteGroup = 8;

/// A candidate that may be the best of a point: lane point % kStrip of strip point / kStrip of the group.
struct Survivor {
  std::int32_t point, candidate;
  float upper;
};

/// What the filter of one operation holds. Slots [8, 16) of the workspace.
struct ByteSearch {
  ByteCandidates candidates;
  Index panel;                 // candidates that stay in the cache while the strips of a group pass
  std::uint8_t *rows, *bytes;  // one strip; those of a group
  float* upper;                // [panel][kStrip]
  Survivor* survivors;
  Index count;   // survivors of the group
  float* pairs;  // two strips of fp32
  bool usable = true;
};

/// More would cost more than they save. There is room for one more of each point.
constexpr Index kMostSurvivors = 64 * kByteGroup * kStrip;

inline ByteSearch byte_search(const ByteCandidates& candidates, Context& context) {
  const Index d = candidates.d;
  const Index strip = kStrip * byte_pitch(d), panel = round_up(clamp((1 << 17) / byte_pitch(d), 1, 1024), kByteTile);
  return {.candidates = candidates,
          .panel = panel,
          .rows = scratch<std::uint8_t>(context, 11, strip),
          .bytes = scratch<std::uint8_t>(context, 12, kByteGroup * strip),
          .upper = scratch<float>(context, 13, panel * kStrip),
          .survivors = scratch<Survivor>(context, 14, kMostSurvivors + kByteGroup * kStrip),
          .count = 0,
          .pairs = scratch<float>(context, 15, 2 * kStrip * d)};
}

/// Arguments: see byte_candidates.
inline ByteSearch byte_search(ByteScore kind, const float* data, Index stride, Index rows, Index capacity, Index d,
                              Context& context) {
  return byte_search(byte_candidates(kind, data, stride, rows, capacity, d, context, 8), context);
}

/// What an upper bound must reach; +inf where no candidate has been seen.
inline Vec threshold(const ByteStrip& strip, int v) {
  return select(strip.highest[v] > broadcast(-kInfinity), strip.highest[v] - strip.slack[v], broadcast(kInfinity));
}

/// Appends the candidates [candidate, candidate + rows) that can still win, in increasing order for each point. False where
/// they are too many.
inline bool collect(ByteSearch& search, const ByteStrip& strip, Index number, Index candidate, Index rows) {
  const auto low = __m512(threshold(strip, 0)), high = __m512(threshold(strip, 1));
  const std::uint32_t live = strip.lanes < kStrip ? (std::uint32_t{1} << strip.lanes) - 1 : ~std::uint32_t{0};
  for (Index r = 0; r < rows; ++r) {
    const float* upper = search.upper + r * kStrip;
    const std::uint32_t kept = live & (_mm512_cmp_ps_mask(_mm512_load_ps(upper), low, _CMP_GE_OQ) |
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

/// Candidates [begin, end) for strip `number` of the group; begin is a multiple of kByteTile. False: too many survive.
inline bool filter_panel(ByteSearch& search, ByteStrip& strip, Index number, Index begin, Index end) {
  begin = max(begin, strip.begin / kByteTile * kByteTile);
  end = min(end, strip.end);
  for (Index c = begin; c < end; c += kByteTile) {
    float* upper = search.upper + (c - begin) * kStrip;
    const bool self = c < strip.self_end && c + kByteTile > strip.self_begin;
    if (self || c < strip.all_begin || c + kByteTile > strip.all_end)
      byte_tile<true>(search.candidates, c, strip, upper);
    else
      byte_tile<false>(search.candidates, c, strip, upper);
  }
  return collect(search, strip, number, begin, end - begin);
}

/// Drops what thresholds that have risen since leave out.
inline void prune(ByteSearch& search, const ByteStrip* strips) {
  Index kept = 0;
  for (Index i = 0; i < search.count; ++i) {
    const Survivor& s = search.survivors[i];
    const ByteStrip& strip = strips[s.point / kStrip];
    const int v = s.point / W % 2, lane = s.point % W;
    if (s.upper >= strip.highest[v][lane] - strip.slack[v][lane]) search.survivors[kept++] = s;
  }
  search.count = kept;
}

/// The survivors of up to kByteGroup strips; false where they are too many.
inline bool find_survivors(ByteSearch& search, ByteStrip* strips, Index count) {
  Index begin = strips[0].begin, end = strips[0].end;
  for (Index s = 1; s < count; ++s) {
    begin = min(begin, strips[s].begin);
    end = max(end, strips[s].end);
  }
  search.count = 0;
  for (begin = begin / kByteTile * kByteTile; begin < end; begin += search.panel) {
    for (Index s = 0; s < count; ++s)
      if (!filter_panel(search, strips[s], s, begin, begin + search.panel)) return false;
    prune(search, strips);
  }
  return true;
}

/// f(survivor, score) for all in order. point(i), candidate(i): rows. pairs(points, candidates, strips, scores): kStrip scores.
template <class Point, class Candidate, class Pairs, class F>
inline void score_survivors(const ByteSearch& search, Point point, Candidate candidate, Pairs pairs, F f) {
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

#endif
