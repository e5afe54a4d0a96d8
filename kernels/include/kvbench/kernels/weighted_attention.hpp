// SPDX-License-Identifier: Apache-2.0
// Attention over weighted entries with separate numerator and denominator weights: the form in which every compressed
// cache answers,  z(q) = sum wN exp(<q,k> scale) v / sum wD exp(<q,k> scale).
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// Adds one table of entries to the running state (max, den, num) of R = G*m query rows (stacked as in ExactAttention).
/// The table has L rows of `width` slots, L = (per_head ? G : 1) * (per_query ? m : 1); query head g at query i reads
/// table row (per_head ? g : 0) * (per_query ? m : 1) + (per_query ? i : 0).
/// The state means: numerator = num * exp(max), denominator = den * exp(max). It starts at max = -inf, den = 0, num =
/// 0; calls in a fixed order give reproducible bits. The answer is num / den.
template <template <class> class Ref>
struct WeightedAttention {
  Ref<const float> queries;       ///< [R, d]
  Ref<const std::int32_t> first;  ///< [m, 1] query i may use ids first[i] <= id < last[i]; other slots are skipped
  Ref<const std::int32_t> last;   ///< [m, 1]
  float scale = 1;
  Ref<const float> keys;    ///< [n, d] the tokens' own keys
  Ref<const float> values;  ///< [n, dv]
  Ref<const float> scores =
      {};  ///< [R, n] logits of the tokens, scale included, kept by the exact pass; absent: computed
  Ref<const std::int32_t> ids;  ///< [L, width] token of the slot, or the token whose position it has; -1: unused slot
  Ref<const float> weight_num = {};  ///< [L, width] wN; absent: 1
  Ref<const float> weight_den = {};  ///< [L, width] wD; absent: 1
  Ref<const float> own_keys = {};    ///< [L*width, d] keys in place of the tokens'; absent: the tokens'
  Ref<const float> own_values = {};  ///< [L*width, dv] values in place of the tokens'; absent: the tokens'
  bool per_head = false;
  bool per_query = false;
  Index group = 1;         ///< G
  Ref<float> max;          ///< [R, 1] in and out
  Ref<float> den;          ///< [R, 1] in and out
  Ref<float> num;          ///< [R, dv] in and out
  Ref<float> logits = {};  ///< [R, width] logit of each slot used, -inf where skipped; absent: not kept

  static constexpr auto fields(auto& op) {
    return std::tie(op.queries, op.first, op.last, op.scale, op.keys, op.values, op.scores, op.ids, op.weight_num,
                    op.weight_den, op.own_keys, op.own_values, op.per_head, op.per_query, op.group, op.max, op.den,
                    op.num, op.logits);
  }
};

/// R * width slots: 2dv + 4 flops each, and 2d more where logits are computed.
inline Cost cost(const WeightedAttention<Buffer>& a) {
  const bool computed = !a.scores.present() || a.own_keys.present();
  const Index d = computed ? a.queries.cols() : 0;
  const Index dv = a.values.cols();
  const double slots = static_cast<double>(a.queries.rows()) * static_cast<double>(a.ids.cols());
  const double entries = elements(a.ids) * static_cast<double>(d + dv) * sizeof(float);
  const double gathered = computed ? 0 : slots * sizeof(float);
  const double tables = bytes(a.queries, a.ids, a.weight_num, a.weight_den, a.logits),
               state = 2 * bytes(a.max, a.den, a.num);
  return {slots * static_cast<double>(2 * d + 2 * dv + 4), tables + entries + gathered + state};
}

}  // namespace kvbench::kernels
