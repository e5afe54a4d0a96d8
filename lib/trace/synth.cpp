// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/synth.hpp>

#include <cmath>
#include <numeric>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/kernels/half.hpp>
#include <kvbench/trace/patterns.hpp>

namespace kvbench::trace {
namespace {

void check_options(const SynthOptions& o) {
  const auto at_least = [](std::int64_t value, std::int64_t least, const char* flag) {
    if (value < least) throw Error("{} is {}; it must be at least {}.", flag, value, least);
    if (value > std::int64_t{1} << 24) throw Error("{} is {}; it must be at most {}.", flag, value, std::int64_t{1} << 24);
  };
  at_least(o.num_tokens, 1, "--tokens");
  at_least(o.prompt_tokens, 1, "--prompt-tokens");
  at_least(o.num_queries, 1, "--queries");
  at_least(o.layers, 1, "--layers");
  at_least(o.query_heads, 1, "--query-heads");
  at_least(o.kv_heads, 1, "--kv-heads");
  at_least(o.head_dim, 1, "--head-dim");
  at_least(o.value_dim, 1, "--value-dim");
  at_least(o.prompts, 1, "--prompts");
  at_least(o.clusters, 1, "--clusters");
  if (o.layers > 65535 || o.query_heads > 65535) throw Error("--layers and --query-heads must stay below 65536.");
  if (o.prompt_tokens > o.num_tokens) {
    throw Error("--prompt-tokens is {}, more than --tokens = {}; lower it.", o.prompt_tokens, o.num_tokens);
  }
  if (o.num_queries > o.num_tokens) {
    throw Error("--queries is {}, more than --tokens = {}; lower it.", o.num_queries, o.num_tokens);
  }
  if (o.query_heads % o.kv_heads != 0) {
    throw Error("--query-heads = {} is no multiple of --kv-heads = {}.", o.query_heads, o.kv_heads);
  }
  if (!std::isfinite(o.spread) || o.spread < 0) throw Error("--spread is {}; it must be finite and at least 0.", o.spread);
  if (!std::isfinite(o.key_norm) || o.key_norm <= 0)
    throw Error("--key-norm is {}; it must be finite and above 0.", o.key_norm);
  if (o.speculation_error && !(std::isfinite(*o.speculation_error) && *o.speculation_error >= 0)) {
    throw Error("--speculated is {}; it must be finite and at least 0.", *o.speculation_error);
  }
}

const char* name_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::gaussian:
      return "gaussian";
    case Pattern::clusters:
      return "clusters";
    case Pattern::sinks:
      return "sinks";
    case Pattern::heavy_hitters:
      return "heavy_hitters";
    case Pattern::needle:
      return "needle";
  }
  return "?";
}

LayerInfo describe_layer(const SynthOptions& options, std::int64_t index) {
  LayerInfo layer;
  layer.layer = static_cast<int>(index);
  layer.scale = 1 / std::sqrt(static_cast<double>(options.head_dim));
  layer.query_positions.resize(static_cast<std::size_t>(options.num_queries));
  std::iota(layer.query_positions.begin(), layer.query_positions.end(), options.num_tokens - options.num_queries);
  if (options.column_sums) layer.column_sums_end = options.prompt_tokens;
  layer.speculated_queries = options.speculation_error.has_value();
  return layer;
}

TraceInfo describe(const SynthOptions& options) {
  TraceInfo info;
  info.model = fmt::format("synthetic-{}", name_of(options.pattern));
  info.arch = "synthetic";
  info.source_tool = "kvbench synth";
  info.source_version = fmt::format("pattern={} clusters={} spread={} key_norm={} seed={}", name_of(options.pattern),
                                    options.clusters, options.spread, options.key_norm, options.seed);
  if (options.speculation_error) info.source_version += fmt::format(" speculated={}", *options.speculation_error);
  info.num_layers = options.layers;
  info.num_query_heads = options.query_heads;
  info.num_kv_heads = options.kv_heads;
  info.head_dim = options.head_dim;
  info.value_dim = options.value_dim;
  info.rope_type = "none";
  info.rope_layout = "half";
  info.dtype = options.dtype;
  for (std::int64_t p = 0; p < options.prompts; ++p) {
    PromptInfo prompt;
    prompt.id = std::to_string(p);
    prompt.name = fmt::format("{}-{}", name_of(options.pattern), p);
    prompt.num_tokens = options.num_tokens;
    prompt.prompt_tokens = options.prompt_tokens;
    prompt.tokens.resize(static_cast<std::size_t>(options.num_tokens));
    std::iota(prompt.tokens.begin(), prompt.tokens.end(), 0);
    for (std::int64_t l = 0; l < options.layers; ++l) prompt.layers.push_back(describe_layer(options, l));
    info.prompts.push_back(std::move(prompt));
  }
  return info;
}

/// To what a reader of the trace will see, so that the column sums belong to the stored queries and keys.
void round_to(Dtype dtype, std::vector<float>& values) {
  if (dtype == Dtype::f32) return;
  for (float& x : values) x = dtype == Dtype::f16 ? widen_f16(narrow_f16(x)) : widen_bf16(narrow_bf16(x));
}

}  // namespace

void synthesize(const std::string& path, const SynthOptions& options) {
  check_options(options);
  const TraceInfo info = describe(options);
  Writer writer(path, info, {.compress = options.compress});
  const double scale = info.prompts[0].layers[0].scale;
  const auto first_query = static_cast<std::size_t>((options.num_tokens - options.num_queries) * options.head_dim);
  for (std::size_t p = 0; p < info.prompts.size(); ++p) {
    for (std::size_t l = 0; l < info.prompts[p].layers.size(); ++l) {
      for (std::int64_t h = 0; h < options.kv_heads; ++h) {
        SynthHead head =
            draw_head(options, {static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(l), static_cast<std::uint32_t>(h)});
        round_to(options.dtype, head.keys);
        writer.write_rows(p, l, Array::keys, h, 0, head.keys);
        writer.write_rows(p, l, Array::values, h, 0, head.values);
        for (std::size_t g = 0; g < head.queries.size(); ++g) {
          const std::int64_t query_head = h * info.group() + static_cast<std::int64_t>(g);
          round_to(options.dtype, head.queries[g]);
          writer.write_rows(p, l, Array::queries, query_head, 0, std::span(head.queries[g]).subspan(first_query));
          if (options.speculation_error) {
            round_to(options.dtype, head.speculated[g]);
            writer.write_rows(p, l, Array::speculated_queries, query_head, 0,
                              std::span(head.speculated[g]).subspan(first_query));
          }
          if (!options.column_sums) continue;
          writer.write_rows(p, l, Array::column_sums, query_head, 0,
                            column_sums(head.keys, head.queries[g], options.prompt_tokens, options.head_dim, scale));
        }
      }
    }
  }
  writer.commit();
}

}  // namespace kvbench::trace
