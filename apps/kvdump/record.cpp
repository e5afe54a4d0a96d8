// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/record.hpp>

#include <filesystem>
#include <span>

#include <fmt/core.h>

#include <kvbench/core/version.hpp>

#include <apps/common/stop_signals.hpp>

namespace kvbench::kvdump {
namespace {

std::string rope_type(const std::vector<LayerCapture>& layers) {
  for (const auto& layer : layers) {
    if (layer.parameters.rope_type != "default") return layer.parameters.rope_type;
  }
  return "default";
}

trace::LayerInfo describe_layer(const LayerCapture& capture, const Prompt& prompt, const Options& options,
                                const Sketch& sketch) {
  trace::LayerInfo info;
  info.layer = capture.layer;
  info.window = capture.parameters.window;
  info.rope_theta = capture.parameters.rope_theta;
  info.scale = capture.parameters.scale;
  info.softcap = capture.parameters.softcap;
  info.query_positions = prompt.query_positions;
  if (options.column_sums) info.column_sums_end = prompt.prompt_tokens;
  info.keys_pre_rope = info.queries_pre_rope = options.pre_rope;
  info.speculated_queries = options.speculated && capture.layer > 0;
  info.attention_output = options.attention_output;
  info.residual_norm = !sketch.matrix.empty();
  if (info.residual_norm) info.output_sketch = {sketch_columns, options.seed, sketch.misfit};
  return info;
}

void write_heads(trace::Writer& writer, std::size_t prompt, std::size_t layer, trace::Array array, std::int64_t heads,
                 std::span<const float> data) {
  const auto slab = data.size() / static_cast<std::size_t>(heads);
  for (std::int64_t head = 0; head < heads; ++head) {
    app::stop_if_requested();
    writer.write_rows(prompt, layer, array, head, 0, data.subspan(static_cast<std::size_t>(head) * slab, slab));
  }
}

}  // namespace

trace::TraceInfo describe(const Options& options, const Model& model, const std::string& source_quantisation,
                          const std::vector<Prompt>& prompts, const std::vector<LayerCapture>& layers,
                          const Sketches& sketches) {
  trace::TraceInfo info;
  const LayerCapture& first = layers.front();
  info.model = std::filesystem::path(options.model).stem().string();
  info.arch = model.arch();
  const bool converted = options.f32 && source_quantisation != "F32";
  info.quantisation = converted ? fmt::format("F32 from {}", source_quantisation) : source_quantisation;
  info.source_tool = "kvdump";
  info.source_version = fmt::format("{} (llama.cpp {})", version(), llama_version());
  info.num_layers = model.num_layers();
  if (model.is_hybrid()) info.cache_layers = model.cached_layers();
  info.num_query_heads = first.query_heads;
  info.num_kv_heads = first.kv_heads;
  info.head_dim = first.head_dim;
  info.value_dim = first.value_dim;
  info.rope_type = rope_type(layers);
  info.rope_layout = first.parameters.rope_layout;
  info.dtype = options.dtype;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    trace::PromptInfo prompt;
    prompt.id = std::to_string(p);
    prompt.name = prompts[p].name;
    prompt.num_tokens = std::ssize(prompts[p].tokens);
    prompt.prompt_tokens = prompts[p].prompt_tokens;
    prompt.tokens = prompts[p].tokens;
    prompt.spans = prompts[p].spans;
    for (const auto& layer : layers)
      prompt.layers.push_back(describe_layer(layer, prompts[p], options, sketches.of(layer.layer)));
    info.prompts.push_back(std::move(prompt));
  }
  return info;
}

void write_prompt(trace::Writer& writer, std::size_t prompt, const std::vector<LayerCapture>& layers,
                  const Sketches& sketches) {
  using trace::Array;
  for (std::size_t slot = 0; slot < layers.size(); ++slot) {
    const LayerCapture& layer = layers[slot];
    const auto put = [&](Array array, std::int64_t heads, std::span<const float> data) {
      if (!data.empty()) write_heads(writer, prompt, slot, array, heads, data);
    };
    put(Array::keys, layer.kv_heads, layer.keys);
    put(Array::values, layer.kv_heads, layer.values);
    put(Array::queries, layer.query_heads, layer.queries);
    put(Array::keys_pre_rope, layer.kv_heads, layer.keys_pre_rope);
    put(Array::queries_pre_rope, layer.query_heads, layer.queries_pre_rope);
    put(Array::speculated_queries, layer.query_heads, layer.speculated);
    put(Array::attention_output, layer.query_heads, layer.output);
    const std::vector<float> sums(layer.column_sums.begin(), layer.column_sums.end());
    put(Array::column_sums, layer.query_heads, sums);
    put(Array::residual_norm, 1, layer.residual_norm);
    put(Array::output_sketch, layer.query_heads, sketches.of(layer.layer).matrix);
  }
}

}  // namespace kvbench::kvdump
