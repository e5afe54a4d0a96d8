// SPDX-License-Identifier: Apache-2.0
// Weighted attention where every query row has tokens of its own, in increasing order: all rows pass over one block of tokens
// before any goes on to the next, so that the block's values come from memory once and from the second-level cache afterwards.
#pragma once

#include "softmax_panel.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

constexpr Index kBlockBytes = 256 * 1024;  // of values that stay in the second-level cache
constexpr Index kStateBytes = 320 * 1024;  // of numerators that stay there beside them
constexpr Index kRowsTogether = 256;

/// One query row on its way through its tokens.
struct OwnTokens {
  const std::int32_t* ids;         // increasing
  const std::int32_t* segment_of;  // by slot, may be null
  Index count, next;
  const float* weight_num;  // by slot, may be null
  const float* weight_den;
  const float* scores;  // by token
  float* logits;        // by slot, may be null
  std::int32_t first, last;
  Index state;  // row of the state of segment 0
};

/// The state of all rows and segments; a segment's rows lie `segment` rows apart.
struct SegmentStates {
  float* max;
  double* den;
  float* num;
  Index stride, segment;
};

/// Slots in use of a row whose ids increase and whose unused slots all come last; -1 where they do not.
inline Index increasing_slots(const std::int32_t* ids, Index width) {
  while (width > 0 && ids[width - 1] < 0) --width;
  bool increasing = width == 0 || ids[0] >= 0;
  for (Index j = 1; j < width; ++j) increasing &= ids[j - 1] < ids[j];
  return increasing ? width : -1;
}

/// num = num * correction + sum of weights[j] * values[ids[j]] over Strips strips from `column` on.
template <int Strips>
inline void add_values(const float* values, Index stride, const std::int32_t* ids, const float* weights, Index count,
                       Index column, float correction, float* num) {
  Vec acc[2 * Strips] = {};
  for (Index j = 0; j < count; ++j) {
    const float* value = values + ids[j] * stride + column;
    const Vec p = broadcast(weights[j]);
#pragma GCC unroll 8
    for (int v = 0; v < 2 * Strips; ++v) acc[v] = fma(p, load(value + v * W), acc[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * Strips; ++v)
    store(num + column + v * W, fma(load(num + column + v * W), broadcast(correction), acc[v]));
}

/// Up to kPanel tokens of one row, sorted by segment.
struct Buckets {
  Index count[max_attention_segments];
  alignas(64) std::int32_t ids[max_attention_segments][kPanel];
  alignas(64) float logits[max_attention_segments][kPanel];
  alignas(64) float weight_num[max_attention_segments][kPanel];
  alignas(64) float weight_den[max_attention_segments][kPanel];
};

inline void fill_buckets(const OwnTokens& row, Index count, Index segments, Buckets& buckets) {
  for (Index s = 0; s < segments; ++s) buckets.count[s] = 0;
  for (Index j = row.next; j < row.next + count; ++j) {
    const std::int32_t id = row.ids[j];
    const Index s = row.segment_of == nullptr ? 0 : row.segment_of[j];
    const Index at = buckets.count[s]++;
    const float logit = id >= row.first && id < row.last ? row.scores[id] : -kInfinity;
    buckets.ids[s][at] = id;
    buckets.logits[s][at] = logit;
    if (row.weight_num != nullptr) buckets.weight_num[s][at] = row.weight_num[j];
    if (row.weight_den != nullptr) buckets.weight_den[s][at] = row.weight_den[j];
    if (row.logits != nullptr) row.logits[j] = logit;
  }
  for (Index s = 0; s < segments; ++s)
    for (Index j = buckets.count[s]; j < round_up(buckets.count[s], kStrip); ++j) {
      buckets.logits[s][j] = -kInfinity;
      buckets.weight_num[s][j] = buckets.weight_den[s][j] = 0;
    }
}

/// Adds up to kPanel of the row's tokens to its states.
inline void add_tokens(OwnTokens& row, const float* values, Index stride, Index dv, Index count, Index segments,
                       const SegmentStates& states, Buckets& buckets) {
  fill_buckets(row, count, segments, buckets);
  row.next += count;
  for (Index s = 0; s < segments; ++s) {
    const Index n = buckets.count[s];
    if (n == 0) continue;
    const Index state = row.state + s * states.segment;
    float* weights = buckets.logits[s];
    float* num = states.num + state * states.stride;
    const float correction =
        soften(weights, round_up(n, kStrip), row.weight_num == nullptr ? nullptr : buckets.weight_num[s],
               row.weight_den == nullptr ? nullptr : buckets.weight_den[s], states.max[state], states.den[state]);
    Index column = 0;
    for (; column + 4 * kStrip <= dv; column += 4 * kStrip)
      add_values<4>(values, stride, buckets.ids[s], weights, n, column, correction, num);
    for (; column < dv; column += kStrip) add_values<1>(values, stride, buckets.ids[s], weights, n, column, correction, num);
  }
}

/// All rows over all tokens 0 .. tokens - 1; dv is a multiple of kStrip.
inline void pass_over_tokens(OwnTokens* rows, Index count, const float* values, Index stride, Index dv, Index tokens,
                             Index segments, const SegmentStates& states) {
  Buckets buckets;
  const Index block = max(kBlockBytes / (dv * static_cast<Index>(sizeof(float))), 1);
  for (Index begin = 0; begin < tokens; begin += block)
    for (Index r = 0; r < count; ++r) {
      // The next row's scores of this block are on their way while this row is summed.
      if (r + 1 < count)
        for (Index j = begin; j < min(begin + block, tokens); j += 16) __builtin_prefetch(rows[r + 1].scores + j);
      OwnTokens& row = rows[r];
      Index stop = row.next;
      while (stop < row.count && row.ids[stop] < begin + block) ++stop;
      while (row.next < stop) add_tokens(row, values, stride, dv, min(kPanel, stop - row.next), segments, states, buckets);
    }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
