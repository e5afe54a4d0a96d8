// SPDX-License-Identifier: Apache-2.0
// Best matches by the filter of byte_products.hpp: scores of the few candidates that are left are the chains of product_tile.
#pragma once

#include "byte_points.hpp"
#include "match_strips.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

#if KVBENCH_WIDTH == 16

/// Making bytes of a row of d columns costs about what a point gains on 8192 / d candidates.
inline bool filter_pays(const Match& op) {
  const Index n = op.points.rows, c = op.candidates.rows;
  const Index pairs = op.pairs > 0 ? op.pairs : n * c;
  return pairs * op.points.cols >= 8192 * (n + c);
}

/// What the filter of a best match holds.
struct MatchFilter {
  ByteSearch search;
  KeptPoints kept = {};  // where the operation has memory
  bool usable = false;
};

/// Not usable where a candidate cannot be used. Points that are to be kept are so from the first call on.
inline MatchFilter start_filter(const Match& op, Context& context) {
  MatchFilter filter = {};
  const auto &rows = op.candidates, &points = op.points;
  const Index d = points.cols;
  if (rows.rows == 0) return filter;
  if (op.memory.data != nullptr) filter.kept = kept_points(op.memory.data, points.rows, d);
  if (op.moved.data != nullptr) {
    if (*filter.kept.usable == 0) return filter;
  } else {
    const bool wanted = wants_filter(context, filter_pays(op), d);
    if (op.memory.data != nullptr) *filter.kept.usable = 0;
    if (!wanted) return filter;
    if (op.memory.data != nullptr) keep_points(filter.kept, points.data, points.stride, points.rows, d);
  }
  filter.search = op.memory.data != nullptr
                      ? byte_search(byte_candidates(ByteScore::product, filter.kept.centre, rows.rows, d, context, 9), context)
                      : byte_search(ByteScore::product, rows.data, rows.stride, rows.rows, rows.rows, d, context);
  filter.usable = true;
  for (Index i = 0; i < rows.rows && filter.usable; ++i) {
    const float bias = op.bias.data == nullptr ? 0 : op.bias.data[i * op.bias.stride];
    filter.usable = set_candidate(filter.search.candidates, i, rows.data + i * rows.stride, bias);
  }
  return filter;
}

/// The candidates that moved, as bytes.
struct MovedBytes {
  ByteCandidates candidates;
  const std::int32_t* numbers;
};

/// Slots [4, 6).
inline MovedBytes moved_bytes(const MatchFilter& filter, PointList moved, Context& context) {
  const ByteCandidates& all = filter.search.candidates;
  ByteCandidates some = byte_candidates(all.kind, all.centre, moved.count, all.d, context, 4);
  some.longest = all.longest;
  some.highest = all.highest;
  const Index pitch = byte_pitch(all.d);
  for (Index i = 0; i < moved.count; ++i) {
    const Index c = moved[i];
    __builtin_memcpy(some.bytes + i * pitch, all.bytes + c * pitch, static_cast<std::size_t>(pitch));
    some.scale[i] = all.scale[c];
    some.shift[i] = all.shift[c];
    some.size[i] = all.size[c];
    some.error[i] = all.error[c];
    some.start[i] = all.start[c];
  }
  return {some, moved.numbers};
}

/// False where a point cannot be used.
inline bool set_strip(const Match& op, const MatchStrip& points, const MatchFilter& filter, std::uint8_t* bytes,
                      ByteStrip& strip) {
  strip.lanes = points.count;
  strip.begin = points.begin;
  strip.end = points.end;
  strip.all_begin = points.all_begin;
  strip.all_end = points.all_end;
  strip.self_begin = op.skip_self ? points.point : 0;
  strip.self_end = op.skip_self ? points.point + points.count : 0;
  for (int v = 0; v < 2; ++v) {
    strip.first[v] = points.first[v];
    strip.last[v] = points.last[v];
    strip.self[v] = points.self[v];
  }
  const auto point = [&](Index lane) { return points.number(lane < points.count ? lane : 0); };
  if (op.memory.data != nullptr) return set_kept_points(filter.search.candidates, filter.kept, point, bytes, strip);
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) rows[lane] = op.points.data + point(lane) * op.points.stride;
  return set_points(filter.search.candidates, rows, filter.search.rows, bytes, strip);
}

/// Where no score is wanted, a point whose only survivor is known to be its best needs none: leaves the others' survivors.
inline void settle_single(ByteSearch& search, MatchStrip* strips) {
  std::int32_t seen[kByteGroup * kStrip] = {};
  for (Index i = 0; i < search.count; ++i) ++seen[search.survivors[i].point];
  Index kept = 0;
  for (Index i = 0; i < search.count; ++i) {
    const Survivor& s = search.survivors[i];
    if (seen[s.point] > 1)
      search.survivors[kept++] = s;
    else
      strips[s.point / kStrip].index[s.point / W % 2][s.point % W] = s.candidate;
  }
  search.count = kept;
}

/// Scores the survivors; their candidates are numbers of those of the operation.
inline void choose(const Match& op, ByteSearch& search, MatchStrip* strips) {
  score_survivors(
      search, [&](Index i) { return op.points.data + strips[i / kStrip].number(i % kStrip) * op.points.stride; },
      [&](Index i) { return op.candidates.data + i * op.candidates.stride; },
      [&](auto points, auto candidates, float* packed, float* scores) {
        pair_products(points, candidates, op.points.cols, packed, scores);
      },
      [&](const Survivor& s, float score) {
        if (op.bias.data != nullptr) score += op.bias.data[s.candidate * op.bias.stride];
        MatchStrip& strip = strips[s.point / kStrip];
        const int v = s.point / W % 2, lane = s.point % W;
        if (!(score > strip.best[v][lane] || (score == strip.best[v][lane] && s.candidate < strip.index[v][lane]))) return;
        strip.best[v][lane] = score;
        strip.index[v][lane] = s.candidate;
      });
}

/// The matches of a group of strips; false, and nothing done, where a point cannot be used or too many candidates survive.
inline bool match_by_bytes(const Match& op, MatchFilter& filter, MatchStrip* strips, Index count) {
  ByteSearch& search = filter.search;
  ByteStrip bytes[kByteGroup] = {};
  for (Index s = 0; s < count; ++s)
    if (!set_strip(op, strips[s], filter, search.bytes + s * kStrip * byte_pitch(op.points.cols), bytes[s])) return false;
  if (!find_survivors(search, bytes, count)) return false;
  if (op.score.data == nullptr) settle_single(search, strips);
  choose(op, search, strips);
  return true;
}

/// The same for points that keep their candidate, op.best, unless one of those that moved is better.
inline bool challenge_by_bytes(const Match& op, MatchFilter& filter, const MovedBytes& moved, MatchStrip* strips, Index count) {
  ByteSearch search = filter.search;
  const auto own = [&](Index s, Index lane) { return op.best.data[strips[s].number(lane) * op.best.stride]; };
  ByteStrip bytes[kByteGroup] = {};
  for (Index s = 0; s < count; ++s) {
    if (!set_strip(op, strips[s], filter, search.bytes + s * kStrip * byte_pitch(op.points.cols), bytes[s])) return false;
    const auto used = [&](Index lane) { return lane < strips[s].count ? lane : 0; };
    raise_to_own(
        search.candidates, filter.kept, [&](Index lane) { return strips[s].number(used(lane)); },
        [&](Index lane) { return own(s, used(lane)); }, bytes[s]);
  }
  search.candidates = moved.candidates;
  if (!find_survivors(search, bytes, count)) return false;
  bool challenged[kByteGroup * kStrip] = {};
  for (Index i = search.count; i-- > 0;) {
    Survivor& s = search.survivors[i];
    s.candidate = moved.numbers[s.candidate];
    if (challenged[s.point]) continue;
    challenged[s.point] = true;
    search.survivors[search.count++] = {s.point, own(s.point / kStrip, s.point % kStrip), 0};
  }
  for (Index s = 0; s < count; ++s)
    for (Index lane = 0; lane < strips[s].count; ++lane)
      if (!challenged[s * kStrip + lane]) strips[s].index[lane / W][lane % W] = own(s, lane);
  choose(op, search, strips);
  return true;
}

#else

constexpr Index kByteGroup = kMatchGroup;
struct MatchFilter {
  bool usable = false;
};
struct MovedBytes {};
inline MatchFilter start_filter(const Match&, Context&) { return {}; }
inline MovedBytes moved_bytes(const MatchFilter&, PointList, Context&) { return {}; }
inline bool match_by_bytes(const Match&, MatchFilter&, MatchStrip*, Index) { return false; }
inline bool challenge_by_bytes(const Match&, MatchFilter&, const MovedBytes&, MatchStrip*, Index) { return false; }

#endif

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
