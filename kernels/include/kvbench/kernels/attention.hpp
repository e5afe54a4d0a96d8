// SPDX-License-Identifier: Apache-2.0
// Exact causal attention over a block of queries: the one pass whose results every method and metric shares.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// A block holds m queries of each of the G query heads that share one kv head, stacked as R = G*m rows: query head g
/// at query i is row g*m + i, so K and V are read once for the whole group. All numbers are fp32.
template <template <class> class Ref>
struct ExactAttention {
  Ref<const float> queries;       ///< [R, d]
  Ref<const float> keys;          ///< [n, d]
  Ref<const float> values;        ///< [n, dv]
  Ref<const std::int32_t> first;  ///< [m, 1] query i sees tokens first[i] <= j < last[i] (causal mask, sliding window)
  Ref<const std::int32_t> last;   ///< [m, 1] 0 <= first[i], last[i] <= n
  float scale = 1;                ///< logits are scale * <q, k>
  Ref<float> out;                 ///< [R, dv] softmax-weighted mean of the values; 0 where a query sees nothing
  Ref<float> max;                 ///< [R, 1] largest logit; -inf where a query sees nothing
  Ref<float> log_sum_exp;         ///< [R, 1] ln sum exp(logit); -inf where a query sees nothing
  Ref<float> scores = {};         ///< [R, n] logits, -inf where masked; absent: not kept

  static constexpr auto fields(auto& op) {
    return std::tie(op.queries, op.keys, op.values, op.first, op.last, op.scale, op.out, op.max, op.log_sum_exp,
                    op.scores);
  }
};

/// Counts every (query, key) pair, masked or not: 2d + 2dv + 4 flops each.
inline Cost cost(const ExactAttention<Buffer>& a) {
  const double pairs = static_cast<double>(a.queries.rows()) * static_cast<double>(a.keys.rows());
  return {pairs * static_cast<double>(2 * a.keys.cols() + 2 * a.values.cols() + 4),
          bytes(a.queries, a.keys, a.values, a.out, a.max, a.log_sum_exp, a.scores)};
}

}  // namespace kvbench::kernels
