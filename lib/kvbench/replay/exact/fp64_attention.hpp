// SPDX-License-Identifier: Apache-2.0
// Exact attention of one query, computed without a kernel: what the exact pass is compared with.
// Refuses heads whose logits overflow fp32: their softmax is undefined, and no figure about them means anything.
#pragma once

#include <span>
#include <vector>

#include <kvbench/kernels/view.hpp>
#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

struct Fp64Attention {
  std::vector<double> out;  ///< [dv]
  double log_sum_exp = 0;   ///< ln of the sum of exp(logit)
};

/// Softmax attention of a query [d] over the tokens first <= j < last (at least one) of keys [n, d] and values [n, dv],
/// with logits scale * <q, k>. Every number is fp64.
Fp64Attention fp64_attention(std::span<const float> query, std::span<const float> keys, std::span<const float> values,
                             Index first, Index last, double scale);

/// The largest absolute value; 0 where there are no values.
float largest_magnitude(std::span<const float> values);

/// Throws Error with dataset, query head, position and token where a logit of the kv head is not finite in fp32. The
/// arguments are the largest_magnitude() of its keys and of the queries of its group: where they show that no logit can
/// overflow, as in every trace of a model, nothing is read.
void check_logits(const trace::Reader& reader, const HeadPlace& place, float largest_key, float largest_query);

}  // namespace kvbench::replay
