// SPDX-License-Identifier: Apache-2.0
// Weighted attention where every query row has tokens of its own, in increasing order. The tokens are taken in spans:
// first the weights of all rows' tokens of a span are computed, then all rows pass over one block of the span's values
// before any proceeds to the next, so that a block is read from memory once and from the second-level cache afterwards.
#pragma once

#include "softmax_panel.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

constexpr Index kSpan = 8192;              // tokens; bounds the weights that wait for their values
constexpr Index kBlockBytes = 256 * 1024;  // of values that stay in the second-level cache
constexpr Index kStateBytes = 320 * 1024;  // of numerators that stay there beside them
constexpr Index kRowsTogether = 256;

/// The tokens of one query row, and the state that they add to.
struct OwnRow {
  const std::int32_t* ids;  // increasing
  Index next, end;          // slots that have not been added yet
  Index stop;               // of them, those before `stop` lie in the current span
  const float* weight_num;  // by slot, may be null
  const float* weight_den;
  const float* scores;  // by token
  float* logits;        // by slot, may be null
  std::int32_t first, last;
  const float* weights;  // by slot, of the current span
  float* max;
  double* den;
  float* num;  // [dv]
};

/// Slots up to the last one in use.
inline Index used_slots(const std::int32_t* ids, Index width) {
  while (width > 0 && ids[width - 1] < 0) --width;
  return width;
}

/// Whether the ids of a row increase and all its unused slots are at the end.
inline bool increases(const std::int32_t* ids, Index width) {
  width = used_slots(ids, width);
  bool increasing = width == 0 || ids[0] >= 0;
  for (Index j = 1; j < width; ++j) increasing &= ids[j - 1] < ids[j];
  return increasing;
}

/// The first slot from `begin` on whose id is at least `limit`; `end` where none is.
inline Index first_from(const std::int32_t* ids, Index begin, Index end, Index limit) {
  const IntVec bound = broadcast(static_cast<std::int32_t>(limit));
  for (; begin + W <= end; begin += W)
    if (const std::uint32_t beyond = bits(load(ids + begin) >= bound); beyond != 0)
      return begin + __builtin_ctz(beyond);
  while (begin < end && ids[begin] < limit) ++begin;
  return begin;
}

/// Logits of `count` tokens, -inf where the query may not use them and from there to the end of the strip; returns the
/// largest.
inline float look_up_logits(const OwnRow& row, const std::int32_t* ids, Index count, float* logits) {
  constexpr Index kAhead = 64;
  const IntVec first = broadcast(row.first);
  const IntVec last = broadcast(row.last);
  const Vec skipped = broadcast(-kInfinity);
  Vec largest = skipped;
  Index j = 0;
  for (; j + W <= count; j += W) {
    if (j + kAhead + W <= count)
      for (Index i = 0; i < W; ++i) __builtin_prefetch(row.scores + ids[j + kAhead + i]);
    const IntVec id = load(ids + j);
    const bool neighbours = ids[j + W - 1] - ids[j] == W - 1;  // as the tokens of a page are
    const Vec score = neighbours ? load(row.scores + ids[j]) : gather(row.scores, id);
    const Vec logit = select((id >= first) & (id < last), score, skipped);
    store(logits + j, logit);
    largest = max(largest, logit);
  }
  float tail = -kInfinity;
  for (; j < count; ++j) {
    logits[j] = ids[j] >= row.first && ids[j] < row.last ? row.scores[ids[j]] : -kInfinity;
    tail = tail > logits[j] ? tail : logits[j];
  }
  for (; j < round_up(count, W); ++j) logits[j] = -kInfinity;
  return max(max(largest, broadcast(tail)));
}

/// Turns the logits of `count` slots from `slot` on into weights, and returns the sum of those of the denominator.
inline float exponentials(const OwnRow& row, Index slot, Index count, float base, float* logits) {
  Vec total = {};
  for (Index j = 0; j < count; j += W) {
    const Vec p = exp(load(logits + j) - broadcast(base));
    total += row.weight_den == nullptr ? p : p * load_first(row.weight_den + slot + j, count - j);
    store(logits + j, row.weight_num == nullptr ? p : p * load_first(row.weight_num + slot + j, count - j));
  }
  return sum(total);
}

/// Computes into `weights` the weights of the row's tokens before token `end`, and scales its state to the new maximum.
inline void weigh_span(OwnRow& row, Index end, Index dv, float* weights) {
  row.stop = first_from(row.ids, row.next, row.end, end);
  const Index count = row.stop - row.next;
  if (count == 0) return;
  row.weights = weights - row.next;
  const float largest = look_up_logits(row, row.ids + row.next, count, weights);
  if (row.logits != nullptr)
    __builtin_memcpy(row.logits + row.next, weights, static_cast<std::size_t>(count) * sizeof(float));
  const float old = *row.max;
  const float raised = old > largest ? old : largest;
  const float added = exponentials(row, row.next, count, raised == -kInfinity ? 0.0f : raised, weights);
  const float correction = raised == old ? 1.0f : exp(broadcast(old - raised))[0];
  if (correction != 1)
    for (Index c = 0; c < dv; ++c) row.num[c] *= correction;
  *row.den = *row.den * static_cast<double>(correction) + static_cast<double>(added);
  *row.max = raised;
}

/// num += sum of weights[j] * values[ids[j]] over Strips strips from `column` on.
template <int Strips>
inline void add_values(const float* values, Index stride, const std::int32_t* ids, const float* weights, Index count,
                       Index column, float* num) {
  Vec acc[2 * Strips] = {};
  for (Index j = 0; j < count; ++j) {
    const float* value = values + ids[j] * stride + column;
    const Vec p = broadcast(weights[j]);
#pragma GCC unroll 8
    for (int v = 0; v < 2 * Strips; ++v) acc[v] = fma(p, load(value + v * W), acc[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * Strips; ++v) store(num + column + v * W, load(num + column + v * W) + acc[v]);
}

/// Adds the values of the row's weighed tokens before token `end`.
inline void add_block(OwnRow& row, Index end, const float* values, Index stride, Index dv) {
  const Index begin = row.next;
  row.next = first_from(row.ids, begin, row.stop, end);
  if (row.next == begin) return;
  const std::int32_t* ids = row.ids + begin;
  const float* weights = row.weights + begin;
  const Index count = row.next - begin;
  Index column = 0;
  for (; column + 4 * kStrip <= dv; column += 4 * kStrip)
    add_values<4>(values, stride, ids, weights, count, column, row.num);
  for (; column < dv; column += kStrip) add_values<1>(values, stride, ids, weights, count, column, row.num);
}

/// Floats of weights that one row needs in a span.
inline Index span_weights(Index tokens) { return min(kSpan, tokens) + W; }

/// All rows over all tokens; dv is a multiple of kStrip. `weights` has room for the spans of all rows.
inline void pass_over_tokens(OwnRow* rows, Index count, const float* values, Index stride, Index dv, Index tokens,
                             float* weights) {
  const Index block = max(kBlockBytes / (dv * static_cast<Index>(sizeof(float))), 1);
  const Index ahead = block / count + 1;  // rows of the next block that each row prefetches
  for (Index begin = 0; begin < tokens; begin += kSpan) {
    const Index end = min(begin + kSpan, tokens);
    for (Index r = 0; r < count; ++r) weigh_span(rows[r], end, dv, weights + r * span_weights(tokens));
    for (Index first = begin; first < end; first += block)
      for (Index r = 0; r < count; ++r) {
        const Index next = first + block + r * ahead;
        for (Index token = next; token < min(next + ahead, tokens); ++token)
          for (Index c = 0; c < dv; c += 16) __builtin_prefetch(values + token * stride + c, 0, 2);
        add_block(rows[r], min(first + block, end), values, stride, dv);
      }
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
