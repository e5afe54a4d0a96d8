// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/schema.hpp>

#include <algorithm>

#include <kvbench/trace/layout.hpp>

namespace kvbench::trace {

std::int64_t TraceInfo::depth_of(std::int64_t layer) const {
  return cache_layers.empty() ? layer : std::ranges::lower_bound(cache_layers, layer) - cache_layers.begin();
}

const char* name_of(Array array) {
  switch (array) {
    case Array::keys:
      return "keys";
    case Array::values:
      return "values";
    case Array::queries:
      return "queries";
    case Array::column_sums:
      return "column_sums";
    case Array::keys_pre_rope:
      return "keys_pre_rope";
    case Array::queries_pre_rope:
      return "queries_pre_rope";
    case Array::speculated_queries:
      return "speculated_queries";
    case Array::attention_output:
      return "attention_output";
  }
  return "?";
}

const char* name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "f32";
    case Dtype::f16:
      return "f16";
    case Dtype::bf16:
      return "bf16";
  }
  return "?";
}

Shape shape_of(const TraceInfo& info, const PromptInfo& prompt, const LayerInfo& layer, Array array) {
  const auto queries = static_cast<std::int64_t>(layer.query_positions.size());
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
  }
  return {};
}

bool holds(const LayerInfo& layer, Array array) {
  switch (array) {
    case Array::keys:
    case Array::values:
    case Array::queries:
      return true;
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
  }
  return false;
}

std::string path_of(const PromptInfo& prompt) { return "/prompts/" + prompt.id; }

std::string path_of(const PromptInfo& prompt, const LayerInfo& layer) {
  return path_of(prompt) + "/layers/" + std::to_string(layer.layer);
}

std::string path_of(const PromptInfo& prompt, const LayerInfo& layer, Array array) {
  return path_of(prompt, layer) + "/" + name_of(array);
}

}  // namespace kvbench::trace
