// SPDX-License-Identifier: Apache-2.0
// Attention over weighted entries with separate numerator and denominator weights: the form in which every compressed
// cache answers,  z(q) = sum wN exp(<q,k> scale) v / sum wD exp(<q,k> scale).
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// Adds one table of entries to the running state (max, den, num) of R = G*m query rows (stacked as in ExactAttention).
/// The table has L rows of `width` slots, L = (per_head ? G : 1) * (per_query ? m : 1); query head g at query i reads table
/// row (per_head ? g : 0) * (per_query ? m : 1) + (per_query ? i : 0).
/// With `segment_end`, the slots of a table row are split into segments, and a slot adds to the state of its segment alone:
/// state row s*R + r is that of segment s and query row r. The state means: numerator = num * exp(max), denominator = den *
/// exp(max). It starts at max = -inf, den = 0, num = 0; calls in a fixed order give reproducible bits. The answer is num / den.
template <template <class> class Ref>
struct WeightedAttention {
  Ref<const float> queries;       ///< [R, d]
  Ref<const std::int32_t> first;  ///< [m, 1] query i may use ids first[i] <= id < last[i]; other slots are skipped
  Ref<const std::int32_t> last;   ///< [m, 1]
  float scale = 1;
  Ref<const float> keys;             ///< [n, d] the tokens' own keys
  Ref<const float> values;           ///< [n, dv]
  Ref<const float> scores = {};      ///< [R, n] logits of the tokens, scale included, kept by the exact pass; absent: computed
  Ref<const std::int32_t> ids;       ///< [L, width] token that a slot holds or stands for; -1 = unused slot
  Ref<const float> weight_num = {};  ///< [L, width] wN; absent: 1
  Ref<const float> weight_den = {};  ///< [L, width] wD; absent: 1
  Ref<const float> own_keys = {};    ///< [L*width, d] keys in place of the tokens'; absent: the tokens'
  Ref<const float> own_values = {};  ///< [L*width, dv] values in place of the tokens'; absent: the tokens'
  bool per_head = false;
  bool per_query = false;
  Index group = 1;     ///< G
  Index segments = 1;  ///< S, at most max_attention_segments
  /// [L, S] segment s of a row has the slots from segment_end[s - 1] (0 for s = 0) to before segment_end[s]: these do not
  /// decrease, and slots from the last on are skipped. Absent: one segment of all slots.
  Ref<const std::int32_t> segment_end = {};
  bool accumulate_f64 = false;  ///< sums of this call in fp64 instead of fp32 (rounded to fp32 in the state)
  Ref<float> max;               ///< [S*R, 1] in and out
  Ref<float> den;               ///< [S*R, 1] in and out
  Ref<float> num;               ///< [S*R, dv] in and out
  Ref<float> logits = {};       ///< [R, width] logit of each slot used, -inf where skipped; absent: not kept; needs S = 1

  static constexpr auto fields(auto& op) {
    return std::tie(op.queries, op.first, op.last, op.scale, op.keys, op.values, op.scores, op.ids, op.weight_num,
                    op.weight_den, op.own_keys, op.own_values, op.per_head, op.per_query, op.group, op.segments, op.segment_end,
                    op.accumulate_f64, op.max, op.den, op.num, op.logits);
  }
};
inline constexpr Index max_attention_segments = 16;

struct SlotRange {
  Index begin, end;
};

/// The slots of segment `s` in row `row` of the table.
template <class Op>
KVBENCH_HOST_DEVICE inline SlotRange segment_slots(const Op& op, Index row, Index s) {
  if (op.segment_end.data == nullptr) return {0, op.ids.cols};
  return {s == 0 ? 0 : op.segment_end(row, s - 1), op.segment_end(row, s)};
}

/// R * width slots: 2dv + 4 flops each, and 2d more where logits are computed.
inline Cost cost(const WeightedAttention<Buffer>& a) {
  const bool computed = !a.scores.present() || a.own_keys.present();
  const Index d = computed ? a.queries.cols() : 0;
  const Index dv = a.values.cols();
  const double slots = static_cast<double>(a.queries.rows()) * static_cast<double>(a.ids.cols());
  const double entries = elements(a.ids) * static_cast<double>(d + dv) * sizeof(float);
  const double gathered = computed ? 0 : slots * sizeof(float);
  const double tables = bytes(a.queries, a.ids, a.weight_num, a.weight_den, a.logits), state = 2 * bytes(a.max, a.den, a.num);
  return {slots * static_cast<double>(2 * d + 2 * dv + 4), tables + entries + gathered + state};
}

}  // namespace kvbench::kernels
