// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/logit_check.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/layout.hpp>

namespace kvbench::replay {
namespace {

using trace::Array;

/// Logits are computed as scale * <q, k> or <scale * q, k>; neither may overflow.
double factor_of(const trace::LayerInfo& layer) { return std::max(1.0, layer.scale); }

float logit(std::span<const float> query, std::span<const float> key, float factor) {
  float sum = 0;
  for (std::size_t c = 0; c < key.size(); ++c) sum = std::fma(factor * query[c], key[c], sum);
  return sum;
}

}  // namespace

float largest_magnitude(std::span<const float> values) {
  std::int32_t most = 0;  // bits of positive numbers are ordered as the numbers are, and integers are compared faster
  for (const float value : values) most = std::max(most, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  return std::bit_cast<float>(most);
}

void check_logits(const trace::Reader& reader, const HeadPlace& place, float largest_key, float largest_query) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  const auto dim = static_cast<std::size_t>(info.head_dim);
  const double bound = factor_of(layer) * static_cast<double>(dim) * largest_key * largest_query;
  if (bound < std::numeric_limits<float>::max()) return;
  const std::vector<float> keys = reader.read_head(prompt, layer, Array::keys, place.kv_head);
  for (Index head = place.kv_head * info.group(); head < (place.kv_head + 1) * info.group(); ++head) {
    const std::vector<float> queries = reader.read_head(prompt, layer, Array::queries, head);
    for (std::size_t i = 0; i < layer.query_positions.size(); ++i) {
      const std::int64_t position = layer.query_positions[i];
      const std::int64_t first = layer.window > 0 ? std::max<std::int64_t>(0, position + 1 - layer.window) : 0;
      for (auto j = static_cast<std::size_t>(first); j <= static_cast<std::size_t>(position); ++j) {
        const float value = logit(std::span(queries).subspan(i * dim, dim), std::span(keys).subspan(j * dim, dim),
                                  static_cast<float>(factor_of(layer)));
        if (std::isfinite(value)) continue;
        throw Error(
            "{}: {}: query head {}: the logit of the query at position {} and token {} is {} in fp32; write the trace "
            "with smaller queries and keys.",
            reader.path(), trace::path_of(prompt, layer), head, position, j, value);
      }
    }
  }
}

}  // namespace kvbench::replay
