// SPDX-License-Identifier: Apache-2.0
// Weighted attention where every query row has tokens of its own, in increasing order: all rows pass over one block of tokens
// before any goes on to the next, so that the block's values come from memory once and from the second-level cache afterwards.
#pragma once

#include "softmax_panel.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

constexpr Index kBlockBytes = 256 * 1024;  // of values that stay in the second-level cache
constexpr Index kRowsTogether = 256;       // their numerators stay there beside them

/// One query row on its way through its tokens.
struct OwnTokens {
  const std::int32_t* ids;  // increasing
  Index count, next;
  const float* weight_num;  // by slot, may be null
  const float* weight_den;
  const float* scores;  // by token
  float* logits;        // by slot, may be null
  std::int32_t first, last;
  float* num;
  float max;
  double den;
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

/// Adds up to kPanel of the row's tokens to its state.
inline void add_tokens(OwnTokens& row, const float* values, Index stride, Index dv, Index count) {
  alignas(64) float logits[kPanel];
  alignas(64) float weight_num[kPanel];
  alignas(64) float weight_den[kPanel];
  const std::int32_t* ids = row.ids + row.next;
  for (Index j = 0; j < count; ++j) logits[j] = ids[j] >= row.first && ids[j] < row.last ? row.scores[ids[j]] : -kInfinity;
  if (row.logits != nullptr) __builtin_memcpy(row.logits + row.next, logits, static_cast<std::size_t>(count) * sizeof(float));
  const Index padded = round_up(count, kStrip);
  for (Index j = count; j < padded; ++j) logits[j] = -kInfinity;
  const auto copy_weights = [&](const float* from, float* to) {
    if (from == nullptr) return static_cast<float*>(nullptr);
    for (Index j = 0; j < padded; ++j) to[j] = j < count ? from[row.next + j] : 0;
    return to;
  };
  const float correction = soften(logits, padded, copy_weights(row.weight_num, weight_num),
                                  copy_weights(row.weight_den, weight_den), row.max, row.den);
  Index column = 0;
  for (; column + 4 * kStrip <= dv; column += 4 * kStrip)
    add_values<4>(values, stride, ids, logits, count, column, correction, row.num);
  for (; column < dv; column += kStrip) add_values<1>(values, stride, ids, logits, count, column, correction, row.num);
  row.next += count;
}

/// All rows over all tokens 0 .. tokens - 1; dv is a multiple of kStrip.
inline void pass_over_tokens(OwnTokens* rows, Index count, const float* values, Index stride, Index dv, Index tokens) {
  const Index block = max(kBlockBytes / (dv * static_cast<Index>(sizeof(float))), 1);
  for (Index end = block; end < tokens + block; end += block)
    for (Index r = 0; r < count; ++r) {
      OwnTokens& row = rows[r];
      Index stop = row.next;
      while (stop < row.count && row.ids[stop] < end) ++stop;
      while (row.next < stop) add_tokens(row, values, stride, dv, min(kPanel, stop - row.next));
    }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
