// SPDX-License-Identifier: Apache-2.0
// A small document for tests of the loop: its layers in memory, and all configurations of the registry.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/loop/configuration.hpp>
#include <kvbench/loop/layer_arrays.hpp>
#include <kvbench/methods/registry.hpp>

#include <support/rows.hpp>
#include <support/small_trace.hpp>

namespace kvbench::testing {

using namespace kvbench::loop;
using namespace kvbench::replay;

inline constexpr Index context = 96, scored = 12;

inline trace::SynthOptions loop_options() {
  trace::SynthOptions options = small_options();
  options.num_tokens = context + scored;
  options.prompt_tokens = context;
  options.num_queries = scored + 64;
  options.head_dim = options.value_dim = 8;
  options.speculation_error = 0.1;
  options.probes = 1;  // for sketches of W_O
  return options;
}

/// The arrays of a layer of a trace, in memory.
struct Layer {
  std::vector<float> keys, values, queries, speculated, output;
  std::vector<double> column_sums;

  Layer(const trace::Reader& reader, std::size_t layer) {
    const trace::PromptInfo& prompt = reader.info().prompts[0];
    const auto read = [&](trace::Array array, Index heads, auto& out) {
      for (Index h = 0; h < heads; ++h) {
        const std::vector<float> rows = reader.read_head(prompt, prompt.layers[layer], array, h);
        out.insert(out.end(), rows.begin(), rows.end());
      }
    };
    const Index kv = reader.info().num_kv_heads, all = reader.info().num_query_heads;
    read(trace::Array::keys, kv, keys);
    read(trace::Array::values, kv, values);
    read(trace::Array::queries, all, queries);
    if (prompt.layers[layer].speculated_queries) read(trace::Array::speculated_queries, all, speculated);
    read(trace::Array::column_sums, all, column_sums);
    read(trace::Array::output_sketch, all, output);
  }
  LayerArrays arrays() const { return {keys, values, queries, speculated, column_sums, output}; }
};

/// The first `count` of `rows` rows of each head.
template <class T>
std::vector<T> first_rows(const std::vector<T>& array, Index heads, Index rows, Index count) {
  const Index width = static_cast<Index>(array.size()) / heads;
  std::vector<T> out;
  for (Index h = 0; h < heads; ++h) {
    const auto begin = array.begin() + h * width;
    out.insert(out.end(), begin, begin + width / rows * count);
  }
  return out;
}

/// The trace without its last tokens: `tokens` are left.
inline trace::TraceInfo shortened(trace::TraceInfo info, Index tokens) {
  trace::PromptInfo& prompt = info.prompts[0];
  prompt.num_tokens = tokens;
  if (!prompt.tokens.empty()) prompt.tokens.resize(static_cast<std::size_t>(tokens));
  for (trace::LayerInfo& layer : prompt.layers)
    std::erase_if(layer.query_positions, [&](auto p) { return p >= tokens; });
  return info;
}
inline Layer shortened(Layer layer, const trace::TraceInfo& info, Index tokens) {
  const Index all = info.prompts[0].num_tokens, queries = std::ssize(info.prompts[0].layers[0].query_positions);
  layer.keys = first_rows(layer.keys, info.num_kv_heads, all, tokens);
  layer.values = first_rows(layer.values, info.num_kv_heads, all, tokens);
  layer.queries = first_rows(layer.queries, info.num_query_heads, queries, queries - (all - tokens));
  if (!layer.speculated.empty())
    layer.speculated = first_rows(layer.speculated, info.num_query_heads, queries, queries - (all - tokens));
  layer.column_sums = first_rows(layer.column_sums, info.num_query_heads, all, tokens);
  return layer;
}

/// Rows [begin, begin + count) of each head.
inline std::vector<float> rows_of(const std::vector<float>& array, Index heads, Index begin, Index count, Index cols) {
  const Index rows = std::ssize(array) / (heads * cols);
  std::vector<float> out;
  for (Index h = 0; h < heads; ++h) {
    const auto first = array.begin() + (h * rows + begin) * cols;
    out.insert(out.end(), first, first + count * cols);
  }
  return out;
}

inline void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4).scale(1e-2));
}

/// Whether a method chooses by what a running model does not know: exact logits, speculated queries.
inline bool looks_ahead(const LoopConfiguration& c) {
  const std::string& name = c.method.info->name;
  return name.starts_with("oracle") || name.starts_with("infinigen") || name.starts_with("vattention") ||
         name.starts_with("magicpig");
}

inline std::vector<LoopConfiguration> configurations(const char* budget) {
  std::vector<LoopConfiguration> all;
  for (const Row& row : all_rows()) {
    const MethodChoice choice{row.info, row.params};
    for (std::uint32_t seed = 0; seed < (choice.depends_on_seed() ? 2u : 1u); ++seed) {
      all.push_back({choice, Budget::parse(budget), seed});
    }
  }
  return all;
}

}  // namespace kvbench::testing
