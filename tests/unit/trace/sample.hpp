// SPDX-License-Identifier: Apache-2.0
// A small trace with every part.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <support/messages.hpp>
#include <support/temp_folder.hpp>

#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/reader.hpp>
#include <kvbench/trace/writer.hpp>

namespace kvbench::trace::test {

using namespace kvbench::testing;

inline LayerInfo sample_layer(int index, bool everything) {
  LayerInfo layer;
  layer.layer = index;
  layer.window = everything ? 4 : 0;
  layer.rope_theta = 10000;
  layer.scale = 0.5;
  layer.softcap = everything ? 30 : 0;
  layer.query_positions = {1, 2, 5};
  if (everything) layer.column_sums_end = 4;
  if (everything) layer.output_sketch = {.columns = 5, .seed = 9, .misfit = 0.25};
  layer.residual_norm = everything;
  layer.keys_pre_rope = layer.queries_pre_rope = layer.speculated_queries = layer.attention_output = everything;
  return layer;
}

/// 7 tokens, 4 query heads on 2 kv heads, d = 4, dv = 3; layer 0 without, layer 3 with every optional array. Prompt 10
/// has 3 probes of 2 scored tokens in layer 3, and two anchors.
inline TraceInfo sample_info(Dtype dtype = Dtype::f32) {
  TraceInfo info;
  info.model = "sample";
  info.arch = "llama";
  info.quantisation = "Q4_1";
  info.source_tool = "test";
  info.source_version = "1";
  info.created = "2024-01-02T03:04:05Z";
  info.num_layers = 5;
  info.num_query_heads = 4;
  info.num_kv_heads = 2;
  info.head_dim = 4;
  info.value_dim = 3;
  info.rope_type = "default";
  info.rope_layout = "interleaved";
  info.dtype = dtype;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  PromptInfo prompt;
  prompt.id = "0";
  prompt.name = "first";
  prompt.num_tokens = 7;
  prompt.prompt_tokens = 4;
  prompt.tokens = {5, 3, 2, 9, 1, 0, 49151};
  prompt.layers = {sample_layer(0, false), sample_layer(3, true)};
  info.prompts.push_back(prompt);
  prompt.id = "10";
  prompt.name = "second";
  prompt.answer_start = 5;
  prompt.answer_end = 6;
  prompt.text = "gr\xc3\xbc\xc3\x9f dich";
  prompt.probes = {.count = 3, .tokens = 2, .seed = 7, .evaluated_in = "f32"};
  prompt.anchors = {.version = "0.1.0",
                    .list = {{"q4_0[values=q8_0]", "100%", {}, 0.5, 0.25}, {"h2o", "25%mem", 3, 2, nan}}};
  prompt.layers[1].query_positions = {1, 4, 5};
  prompt.layers[1].probes = true;
  info.prompts.push_back(prompt);
  return info;
}

/// Values that every element type represents exactly, different for each position.
inline std::vector<float> sample_slab(const Shape& shape, std::size_t prompt, std::size_t layer, Array array,
                                      std::int64_t head) {
  std::vector<float> slab(static_cast<std::size_t>(shape.rows * shape.dim));
  if (array == Array::probe_scales) return std::vector<float>(slab.size(), 0.25F);
  const bool positive = array == Array::column_sums || array == Array::residual_norm;
  for (std::size_t i = 0; i < slab.size(); ++i) {
    const std::size_t code =
        i * 31 + prompt * 17 + layer * 5 + static_cast<std::size_t>(array) * 7 + static_cast<std::size_t>(head) * 3;
    slab[i] = static_cast<float>(code % 127) / 8 - (positive ? -0.125F : 6.F);
    if (array != Array::probes) continue;
    slab[i] = i % static_cast<std::size_t>(shape.dim) == 0 ? -127 * 0.25F : 0.25F * static_cast<float>(code % 127);
  }
  return slab;
}

template <class F>
void for_each_head(const TraceInfo& info, F visit) {
  for (std::size_t p = 0; p < info.prompts.size(); ++p) {
    for (std::size_t l = 0; l < info.prompts[p].layers.size(); ++l) {
      for (const Array array : all_arrays) {
        if (!holds(info.prompts[p].layers[l], array)) continue;
        const Shape shape = shape_of(info, info.prompts[p], info.prompts[p].layers[l], array);
        for (std::int64_t head = 0; head < shape.heads; ++head) visit(p, l, array, head, shape);
      }
    }
  }
}

inline void fill(Writer& writer, const TraceInfo& info) {
  for_each_head(info, [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
    writer.write_rows(p, l, array, head, 0, sample_slab(shape, p, l, array, head));
  });
}

inline void write_sample(const std::string& path, const TraceInfo& info = sample_info(), bool compress = false) {
  Writer writer(path, info, {.compress = compress});
  fill(writer, info);
  writer.commit();
}

}  // namespace kvbench::trace::test
