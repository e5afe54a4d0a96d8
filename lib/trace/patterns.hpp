// SPDX-License-Identifier: Apache-2.0
// The draws behind a synthetic trace: one kv head with its query heads.
#pragma once

#include <cstdint>
#include <vector>

#include <kvbench/trace/synth.hpp>

namespace kvbench::trace {

/// Which draws: independent for every prompt, layer and head.
struct Place {
  std::uint32_t prompt = 0, layer = 0, kv_head = 0;
};

struct SynthHead {
  std::vector<float> keys;                     ///< [n, d]
  std::vector<float> values;                   ///< [n, dv]
  std::vector<std::vector<float>> queries;     ///< one [n, d] for each query head of the group
  std::vector<std::vector<float>> speculated;  ///< the same with Gaussian errors; empty unless asked for
};

/// Values have a mean of their own and norms that differ by some 30 %, as in trained models.
SynthHead draw_head(const SynthOptions& options, Place place);

/// Attention mass that each key gets from the causal queries 0 .. end - 1 at the given scale.
/// keys [n, d], queries [n, d] -> [n]; zero from `end` on. fp32 logits, fp64 sums; memory grows with n, not n^2.
std::vector<float> column_sums(const std::vector<float>& keys, const std::vector<float>& queries, std::int64_t end,
                               std::int64_t dim, double scale);

}  // namespace kvbench::trace
