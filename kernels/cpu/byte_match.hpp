// SPDX-License-Identifier: Apache-2.0
// Best matches by the filter of byte_products.hpp: scores of the few candidates that are left are the chains of product_tile.
#pragma once

#include "byte_search.hpp"
#include "match_strips.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Making bytes of a row of d columns costs about what a point gains on 8192 / d candidates.
inline bool filter_pays(const Match& op) {
  const Index n = op.points.rows, c = op.candidates.rows;
  const Index pairs = op.pairs > 0 ? op.pairs : n * c;
  return pairs * op.points.cols >= 8192 * (n + c);
}

/// Not usable where a candidate cannot be used.
inline ByteSearch start_search(const Match& op, Context& context) {
  const auto& rows = op.candidates;
  ByteSearch search = byte_search(ByteScore::product, rows.data, rows.stride, rows.rows, rows.rows, rows.cols, context);
  for (Index i = 0; i < rows.rows && search.usable; ++i) {
    const float bias = op.bias.data == nullptr ? 0 : op.bias.data[i * op.bias.stride];
    search.usable = set_candidate(search.candidates, i, rows.data + i * rows.stride, bias);
  }
  return search;
}

/// False where a point cannot be used.
inline bool set_strip(const Match& op, const MatchStrip& points, ByteSearch& search, std::uint8_t* bytes, ByteStrip& strip) {
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
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane)
    rows[lane] = op.points.data + (points.point + (lane < points.count ? lane : 0)) * op.points.stride;
  return set_points(search.candidates, rows, search.rows, bytes, strip);
}

/// The matches of a group of strips; false, and nothing done, where a point cannot be used or too many candidates survive.
inline bool match_by_bytes(const Match& op, ByteSearch& search, MatchStrip* strips, Index count) {
  const Index d = op.points.cols;
  ByteStrip bytes[kByteGroup] = {};
  for (Index s = 0; s < count; ++s)
    if (!set_strip(op, strips[s], search, search.bytes + s * kStrip * byte_pitch(d), bytes[s])) return false;
  if (!find_survivors(search, bytes, count)) return false;
  score_survivors(
      search, [&](Index i) { return op.points.data + (strips[i / kStrip].point + i % kStrip) * op.points.stride; },
      [&](Index i) { return op.candidates.data + i * op.candidates.stride; },
      [&](auto points, auto candidates, float* packed, float* scores) { pair_products(points, candidates, d, packed, scores); },
      [&](const Survivor& s, float score) {
        if (op.bias.data != nullptr) score += op.bias.data[s.candidate * op.bias.stride];
        MatchStrip& strip = strips[s.point / kStrip];
        const int v = s.point / W % 2, lane = s.point % W;
        if (!(score > strip.best[v][lane])) return;  // in increasing order: the lowest of equals stays
        strip.best[v][lane] = score;
        strip.index[v][lane] = s.candidate;
      });
  return true;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
