// SPDX-License-Identifier: Apache-2.0
// The candidates of each point that remain after the bounds of int8_bounds.hpp, and their scores in fp32.
//
// What excludes candidates of a point is the best score so far, or a lower bound of it. Where bounds are tight, the
// largest lower bound is as good as a score. Elsewhere candidates are scored in fp32, in any order: the one with the
// largest middle of the first panel or the one that the caller knows, and then whatever may be better.
#pragma once

#include "int8_bounds.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Strips that share the panels of candidates.
constexpr Index kSearchStrips = 256 / kStrip;
/// Candidates of a panel, which stays in the second-level cache with its middles while the strips of a group pass. The
/// larger it is, the better is the best one of the first panel.
constexpr Index kSearchPanel = 32768 / W;
static_assert(kSearchPanel % kBoundRows == 0);

/// A candidate that may be the best one of a point: lane point % kStrip of strip point / kStrip of the group.
struct Survivor {
  std::int32_t point, candidate;
  float upper;  // of its score, less the frame; or the score, in any order of its sum
};

/// The state of the searches of one operation. Slots [8, 16) of the workspace.
struct Int8Search {
  Int8Candidates candidates;
  std::uint8_t *rows, *points;  // one strip before it is packed; the packed strips of a group
  float *middles, *highest;     // of a panel: [candidates][kStrip]; [tiles][kStrip]
  Survivor* survivors;
  Index count;   // survivors of the group
  float* pairs;  // two strips of fp32
};

/// More survivors would cost more than the prefilter saves. There is room for one more per point.
constexpr Index kMostSurvivors = 64 * kSearchStrips * kStrip;

inline Int8Search int8_search(const Int8Candidates& candidates, Context& context) {
  const Index d = candidates.d, strip = kStrip * int8_pitch(d);
  auto* const middles = scratch<float>(context, 13, (kSearchPanel + kSearchPanel / kBoundRows) * kStrip);
  return {.candidates = candidates,
          .rows = scratch<std::uint8_t>(context, 11, strip),
          .points = scratch<std::uint8_t>(context, 12, kSearchStrips * strip),
          .middles = middles,
          .highest = middles + kSearchPanel * kStrip,
          .survivors = scratch<Survivor>(context, 14, kMostSurvivors + kSearchStrips * kStrip),
          .count = 0,
          .pairs = scratch<float>(context, 15, 2 * kStrip * d)};
}

/// Candidates around a mean of `data`.
inline Int8Search int8_search(Int8Score kind, const HostMatrix<const float>& data, Index capacity, Context& context) {
  return int8_search(int8_candidates(kind, data, capacity, context, 8), context);
}

/// <a, b> in any order.
inline float rough_product(const float* a, const float* b, Index d) {
  Vec acc[2] = {};
  Index c = 0;
  for (; c + 2 * W <= d; c += 2 * W)
    for (int v = 0; v < 2; ++v) acc[v] = fma(load(a + c + v * W), load(b + c + v * W), acc[v]);
  for (; c < d; c += W) acc[0] = fma(load_first(a + c, d - c), load_first(b + c, d - c), acc[0]);
  return sum(acc[0] + acc[1]);
}

/// -|a - b|^2 / 2 in any order.
inline float rough_nearness(const float* a, const float* b, Index d) {
  Vec acc[2] = {};
  Index c = 0;
  for (; c + 2 * W <= d; c += 2 * W)
    for (int v = 0; v < 2; ++v) {
      const Vec difference = load(a + c + v * W) - load(b + c + v * W);
      acc[v] = fma(difference, difference, acc[v]);
    }
  for (; c < d; c += W) {
    const Vec difference = load_first(a + c, d - c) - load_first(b + c, d - c);
    acc[0] = fma(difference, difference, acc[0]);
  }
  return -sum(acc[0] + acc[1]) / 2;
}

/// Half the width of the bounds of tile t, for one vector of lanes.
inline Vec width_of(const Int8Candidates& set, const Int8Strip& strip, Index t, int v) {
  const Int8Width& tile = set.widths[t];
  return fma(strip.error[v], broadcast(tile.size), strip.reach[v] * broadcast(tile.error));
}

/// What the middle of a candidate must reach whose bounds have that width; +inf while no candidate is known.
inline Vec limit_of(const Int8Strip& strip, Vec width, int v) {
  const Vec limit = strip.best[v] - strip.slack[v] - width;
  return select(strip.best[v] > broadcast(-kInfinity), limit, broadcast(kInfinity));
}

/// Takes the score of a candidate of a lane into account.
inline void raise(Int8Strip& strip, Index lane, std::int32_t candidate, float score) {
  const Index v = lane / W, i = lane % W;
  if (!(score > strip.best[v][i])) return;
  strip.best[v][i] = score;
  strip.holder[v][i] = candidate;
}

/// Raises the best so far to the largest lower bound of the candidates in `tiles` tiles from `begin` on.
inline void raise_by_bounds(const Int8Search& search, Int8Strip& strip, Index begin, Index tiles) {
  for (int v = 0; v < 2; ++v) {
    Vec best = strip.best[v];
    for (Index t = 0; t < tiles; ++t) {
      const Vec width = width_of(search.candidates, strip, begin / kBoundRows + t, v);
      best = max(best, load(search.highest + t * kStrip + v * W) - width);
    }
    strip.best[v] = best;
  }
}

/// Scores the candidate with the largest middle of those in `tiles` tiles from `begin` on, in every lane that has no
/// candidate yet.
template <class Score>
inline void guess(const Int8Search& search, Int8Strip& strip, Index number, Index begin, Index tiles, Score score) {
  for (int v = 0; v < 2; ++v) {
    const std::uint32_t open = bits(strip.best[v] == broadcast(-kInfinity));
    if (open == 0) continue;
    Vec top = broadcast(-kInfinity);
    IntVec where = {};
    for (Index t = 0; t < tiles; ++t) {
      const Vec highest = load(search.highest + t * kStrip + v * W);
      const IntVec higher = highest > top;
      top = select(higher, highest, top);
      where = select(higher, broadcast(static_cast<std::int32_t>(t)), where);
    }
    for (std::uint32_t rest = open & bits(top > broadcast(-kInfinity)); rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctz(rest);
      const Index lane = v * W + i;
      Index c = where[i] * kBoundRows;
      while (!(search.middles[c * kStrip + lane] == top[i])) ++c;
      const auto candidate = static_cast<std::int32_t>(begin + c);
      raise(strip, lane, candidate, score(number * kStrip + lane, candidate) - strip.frame[v][i]);
    }
  }
}

/// Lists a candidate among the survivors, unless its score excludes it.
template <class Score>
inline void take_scored(Int8Search& search, Int8Strip& strip, std::int32_t point, std::int32_t candidate, Score score) {
  const Index lane = point % kStrip, v = lane / W, i = lane % W;
  const bool known = candidate == strip.holder[v][i];
  const float own = known ? strip.best[v][i] : score(point, candidate) - strip.frame[v][i];
  if (!(own >= strip.best[v][i] - strip.slack[v][i])) return;
  search.survivors[search.count++] = {point, candidate, own};
  raise(strip, lane, candidate, own);
}

/// Takes the candidates of the tile at `begin` + kBoundRows t that may be better than the best so far. False where they
/// are too many.
template <class Score>
inline bool take_tile(Int8Search& search, Int8Strip& strip, Index number, Index begin, Index t, int v, Score score) {
  const Vec width = width_of(search.candidates, strip, begin / kBoundRows + t, v);
  for (Index c = t * kBoundRows; c < (t + 1) * kBoundRows; ++c) {
    const Vec middle = load(search.middles + c * kStrip + v * W);
    std::uint32_t hits = bits(middle >= limit_of(strip, width, v));
    if (hits == 0) continue;
    if (search.count + W > kMostSurvivors) return false;
    alignas(64) float upper[W];
    store(upper, middle + width);
    for (; hits != 0; hits &= hits - 1) {
      const int i = __builtin_ctz(hits);
      const auto point = static_cast<std::int32_t>(number * kStrip + v * W + i);
      const auto candidate = static_cast<std::int32_t>(begin + c);
      if constexpr (kTightBounds)
        search.survivors[search.count++] = {point, candidate, upper[i]};
      else
        take_scored(search, strip, point, candidate, score);
    }
  }
  return true;
}

/// Candidates [begin, end) for strip `number` of the group; begin is a multiple of kBoundRows. False where too many
/// remain.
template <class Score>
inline bool search_panel(Int8Search& search, Int8Strip& strip, Index number, Index begin, Index end, Score score) {
  begin = max(begin, strip.begin / kBoundRows * kBoundRows);
  end = min(end, strip.end);
  Index tiles = 0;
  for (Index c = begin; c < end; c += kBoundRows, ++tiles) {
    float *middles = search.middles + (c - begin) * kStrip, *highest = search.highest + tiles * kStrip;
    const bool self = c < strip.self_end && c + kBoundRows > strip.self_begin;
    if (self || c < strip.all_begin || c + kBoundRows > strip.all_end)
      bound_tile<true>(search.candidates, c, strip, middles, highest);
    else
      bound_tile<false>(search.candidates, c, strip, middles, highest);
  }
  if constexpr (kTightBounds)
    raise_by_bounds(search, strip, begin, tiles);
  else
    guess(search, strip, number, begin, tiles, score);
  for (Index t = 0; t < tiles; ++t)
    for (int v = 0; v < 2; ++v) {
      const Vec limit = limit_of(strip, width_of(search.candidates, strip, begin / kBoundRows + t, v), v);
      if (bits(load(search.highest + t * kStrip + v * W) >= limit) == 0) continue;
      if (!take_tile(search, strip, number, begin, t, v, score)) return false;
    }
  return true;
}

/// Drops the survivors that are below the best found since.
inline void prune(Int8Search& search, const Int8Strip* strips) {
  Index kept = 0;
  for (Index i = 0; i < search.count; ++i) {
    const Survivor& s = search.survivors[i];
    const Int8Strip& strip = strips[s.point / kStrip];
    const int v = s.point / W % 2, lane = s.point % W;
    if (s.upper >= strip.best[v][lane] - strip.slack[v][lane]) search.survivors[kept++] = s;
  }
  search.count = kept;
}

/// Finds the survivors of up to kSearchStrips strips, in increasing order for each point; false where they are too
/// many. score(point, candidate) is an fp32 score in any order.
template <class Score>
inline bool find_survivors(Int8Search& search, Int8Strip* strips, Index count, Score score) {
  Index begin = strips[0].begin, end = strips[0].end;
  for (Index s = 1; s < count; ++s) {
    begin = min(begin, strips[s].begin);
    end = max(end, strips[s].end);
  }
  search.count = 0;
  for (begin = begin / kBoundRows * kBoundRows; begin < end; begin += kSearchPanel)
    for (Index s = 0; s < count; ++s)
      if (!search_panel(search, strips[s], s, begin, begin + kSearchPanel, score)) return false;
  prune(search, strips);
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
