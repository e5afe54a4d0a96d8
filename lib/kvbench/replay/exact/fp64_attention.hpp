// SPDX-License-Identifier: Apache-2.0
// Exact attention of one query, computed without a kernel: what the exact pass is compared with.
#pragma once

#include <span>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::replay {

struct Fp64Attention {
  std::vector<double> out;  ///< [dv]
  double log_sum_exp = 0;   ///< ln of the sum of exp(logit)
};

/// Softmax attention of a query [d] over the tokens first <= j < last (at least one) of keys [n, d] and values [n, dv],
/// with logits scale * <q, k>. Every number is fp64.
Fp64Attention fp64_attention(std::span<const float> query, std::span<const float> keys, std::span<const float> values,
                             Index first, Index last, double scale);

}  // namespace kvbench::replay
