// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/schema.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/trace/layout.hpp>

namespace kvbench::trace {

bool Anchor::operator==(const Anchor& other) const {
  const bool same = predicted == other.predicted || (std::isnan(predicted) && std::isnan(other.predicted));
  return same && method == other.method && budget == other.budget && layer == other.layer && kl == other.kl;
}

std::int64_t TraceInfo::depth_of(std::int64_t layer) const {
  return cache_layers.empty() ? layer : std::ranges::lower_bound(cache_layers, layer) - cache_layers.begin();
}

std::int64_t TraceInfo::layers_behind(std::size_t count) const {
  return cache_layers.empty() || count == cache_layers.size() ? num_caches() : 0;
}

const char* name_of(Array array) {
  static constexpr std::string_view names[] = {"keys",
                                               "values",
                                               "queries",
                                               "column_sums",
                                               "keys_pre_rope",
                                               "queries_pre_rope",
                                               "speculated_queries",
                                               "attention_output",
                                               "residual_norm",
                                               "output_sketch",
                                               "probes",
                                               "probe_scales"};
  return name_in(names, array).data();
}

const char* name_of(Dtype dtype) {
  static constexpr std::string_view names[] = {"f32", "f16", "bf16", "i8"};
  return name_in(names, dtype).data();
}

Shape shape_of(const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer, Array array) {
  const auto queries = static_cast<std::int64_t>(layer.query_positions.size());
  const Probes probes = prompt.probes.value_or(Probes{});
  switch (array) {
    case Array::keys:
    case Array::keys_pre_rope:
      return {info.num_kv_heads, prompt.num_tokens, info.head_dim};
    case Array::values:
      return {info.num_kv_heads, prompt.num_tokens, info.value_dim};
    case Array::queries:
    case Array::queries_pre_rope:
    case Array::speculated_queries:
      return {info.num_query_heads, queries, info.head_dim};
    case Array::attention_output:
      return {info.num_query_heads, queries, info.value_dim};
    case Array::column_sums:
      return {info.num_query_heads, prompt.num_tokens, 1};
    case Array::residual_norm:
      return {1, queries, 1};
    case Array::output_sketch:
      return {info.num_query_heads, info.value_dim, layer.output_sketch.value_or(OutputSketch{}).columns};
    case Array::probes:
      return {info.num_query_heads, probes.count * probes.tokens, info.value_dim};
    case Array::probe_scales:
      return {info.num_query_heads, probes.count * probes.tokens, 1};
  }
  return {};
}

bool holds(const LayerInfo& layer, Array array) {
  switch (array) {
    case Array::keys:
    case Array::queries:
      return true;
    case Array::values:
      return !layer.values_in_keys;
    case Array::column_sums:
      return layer.column_sums_end.has_value();
    case Array::keys_pre_rope:
      return layer.keys_pre_rope;
    case Array::queries_pre_rope:
      return layer.queries_pre_rope;
    case Array::speculated_queries:
      return layer.speculated_queries;
    case Array::attention_output:
      return layer.attention_output;
    case Array::residual_norm:
      return layer.residual_norm;
    case Array::output_sketch:
      return layer.output_sketch.has_value();
    case Array::probes:
    case Array::probe_scales:
      return layer.probes;
  }
  return false;
}

Dtype dtype_of(const TraceInfo& info, Array array) {
  const bool wide = array == Array::column_sums || array == Array::residual_norm || array == Array::probe_scales;
  return array == Array::probes ? Dtype::i8 : wide ? Dtype::f32 : info.dtype;
}

std::string path_of(const PromptInfo& prompt) { return "/prompts/" + prompt.id; }

std::string path_of(const PromptInfo& prompt, const LayerInfo& layer) {
  return path_of(prompt) + "/layers/" + std::to_string(layer.layer);
}

std::string path_of(const PromptInfo& prompt, const LayerInfo& layer, Array array) {
  return path_of(prompt, layer) + "/" + name_of(array);
}

}  // namespace kvbench::trace
