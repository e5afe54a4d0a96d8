// SPDX-License-Identifier: Apache-2.0
// Best matches by the filter of byte_products.hpp: few candidates of each point are left, and their scores are the chains of
// product_tile, a pair a lane.
#pragma once

#include "byte_products.hpp"
#include "match_strips.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// What the filter of one operation holds. Slots 1 to 8 of the workspace.
struct ByteMatch {
  ByteCandidates candidates;
  std::uint8_t *rows, *bytes;  // one strip; all of a group
  float* upper;                // one strip, a panel of candidates
  Survivors survivors;
  float* pairs;  // two strips of fp32
};

inline Index byte_panel(Index d) { return clamp((Index{1} << 17) / byte_pitch(d), kByteTile, 1024) / kByteTile * kByteTile; }

/// Making bytes of a row costs about what a point gains on 32 candidates, and few columns leave little to gain.
inline bool filter_pays(const Match& op) {
  const Index n = op.points.rows, c = op.candidates.rows;
  const Index pairs = op.pairs > 0 ? op.pairs : n * c;
  return op.points.cols >= 32 && pairs >= 64 * (n + c);
}

/// False where the candidates cannot be used.
inline bool start(const Match& op, Context& context, ByteMatch& match) {
  const Index d = op.points.cols, c = op.candidates.rows, strip = kStrip * byte_pitch(d);
  constexpr Index kept = 64;  // of a point; more would cost more than they save
  const Index capacity = kMatchGroup * kStrip * kept;
  match.candidates = byte_candidates(op.candidates.data, op.candidates.stride, c, c, d, context, 1);
  match.rows = scratch<std::uint8_t>(context, 4, strip);
  match.bytes = scratch<std::uint8_t>(context, 5, kMatchGroup * strip);
  match.upper = scratch<float>(context, 6, byte_panel(d) * kStrip);
  match.survivors = {.items = scratch<Survivor>(context, 7, capacity), .capacity = capacity};
  match.pairs = scratch<float>(context, 8, 2 * kStrip * d);
  for (Index i = 0; i < c; ++i) {
    const float bias = op.bias.data == nullptr ? 0 : op.bias.data[i * op.bias.stride];
    if (!set_candidate(match.candidates, i, op.candidates.data + i * op.candidates.stride, bias)) return false;
  }
  return true;
}

inline bool set_strip(const Match& op, const MatchStrip& points, ByteMatch& match, std::uint8_t* bytes, ByteStrip& strip) {
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane)
    rows[lane] = op.points.data + (points.point + (lane < points.count ? lane : 0)) * op.points.stride;
  for (int v = 0; v < 2; ++v) {
    strip.first[v] = points.first[v];
    strip.last[v] = points.last[v];
    strip.self[v] = points.self[v];
  }
  return set_strip(match.candidates, rows, match.rows, bytes, strip);
}

/// The candidates of a panel for one strip; `number` is that of the strip in its group. False: too many survive.
inline bool filter_panel(const Match& op, const MatchStrip& points, Index number, Index begin, Index end, ByteMatch& match,
                         ByteStrip& strip) {
  begin = max(begin, points.begin) / kByteTile * kByteTile;
  end = min(end, points.end);
  for (Index c = begin; c < end; c += kByteTile) {
    float* upper = match.upper + (c - begin) * kStrip;
    const bool own = op.skip_self && c < points.point + points.count && c + kByteTile > points.point;
    if (own || c < points.all_begin || c + kByteTile > points.all_end)
      byte_tile<true>(match.candidates, c, strip, upper);
    else
      byte_tile<false>(match.candidates, c, strip, upper);
  }
  return collect(strip, match.upper, begin, end - begin, number * kStrip, points.count, match.survivors);
}

/// The scores of the survivors, in the order of the candidates of each point.
inline void decide(const Match& op, const ByteMatch& match, MatchStrip* strips) {
  const Index d = op.points.cols;
  const Survivors& all = match.survivors;
  for (Index first = 0; first < all.count; first += kStrip) {
    const float *points[kStrip], *candidates[kStrip];
    for (Index lane = 0; lane < kStrip; ++lane) {
      const Survivor& s = all.items[min(first + lane, all.count - 1)];
      points[lane] = op.points.data + (strips[s.point / kStrip].point + s.point % kStrip) * op.points.stride;
      candidates[lane] = op.candidates.data + s.candidate * op.candidates.stride;
    }
    alignas(64) float scores[kStrip];
    pair_products(points, candidates, d, match.pairs, scores);
    for (Index i = first; i < min(first + kStrip, all.count); ++i) {
      const Survivor& s = all.items[i];
      const float bias = op.bias.data == nullptr ? 0 : op.bias.data[s.candidate * op.bias.stride];
      const float score = op.bias.data == nullptr ? scores[i - first] : scores[i - first] + bias;
      MatchStrip& strip = strips[s.point / kStrip];
      const int v = s.point / W % 2, lane = s.point % W;
      if (!(score > strip.best[v][lane])) continue;
      strip.best[v][lane] = score;
      strip.index[v][lane] = s.candidate;
    }
  }
}

/// The matches of a group of strips; false, and nothing done, where a point cannot be used or too many candidates survive.
inline bool match_by_bytes(const Match& op, ByteMatch& match, MatchStrip* strips, Index count) {
  const Index d = op.points.cols, panel = byte_panel(d);
  ByteStrip bytes[kMatchGroup];
  Index begin = op.candidates.rows, end = 0;
  for (Index s = 0; s < count; ++s) {
    if (!set_strip(op, strips[s], match, match.bytes + s * kStrip * byte_pitch(d), bytes[s])) return false;
    begin = min(begin, strips[s].begin);
    end = max(end, strips[s].end);
  }
  match.survivors.count = 0;
  for (begin = begin / kByteTile * kByteTile; begin < end; begin += panel) {
    for (Index s = 0; s < count; ++s)
      if (!filter_panel(op, strips[s], s, begin, begin + panel, match, bytes[s])) return false;
    prune(bytes, match.survivors);
  }
  decide(op, match, strips);
  return true;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
