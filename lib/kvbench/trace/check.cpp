// SPDX-License-Identifier: Apache-2.0
// Checks of the description of a trace against the schema. Reader and Writer apply the same rules.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/trace/layout.hpp>

namespace kvbench::trace {
namespace {

/// The values of `rope_type`; `other` stands for those of models that are not listed.
constexpr std::array<std::string_view, 12> rope_types = {"default", "none",         "partial", "linear",
                                                         "dynamic", "yarn",         "llama3",  "longrope",
                                                         "mrope",   "proportional", "other",   "unknown"};

void check_names(const TraceInfo& info, const std::string& file) {
  const auto attribute = [&](const std::string& value, const std::string& at, const char* name) {
    check_name(value, fmt::format("{}: attribute '{}'", at, name));
  };
  attribute(info.model, file, "model");
  attribute(info.arch, file, "arch");
  attribute(info.quantisation, file, "quantisation");
  attribute(info.source_tool, file, "source_tool");
  attribute(info.source_version, file, "source_version");
  attribute(info.created, file, "created");
  for (const PromptInfo& prompt : info.prompts) {
    check_name(prompt.id, file + ": the name of a group of /prompts");
    attribute(prompt.name, file + ": " + path_of(prompt), "name");
  }
}

void check_model(const TraceInfo& info, const std::string& file) {
  const auto size = [&](std::int64_t value, std::int64_t most, const char* name) {
    if (value <= 0) throw Error("{}: attribute '{}' is {}; it must be at least 1.", file, name, value);
    if (value > most)
      throw Error("{}: attribute '{}' is {}, which no model has; it must be at most {}.", file, name, value, most);
  };
  size(info.num_layers, most_layers, "num_layers");
  size(info.num_query_heads, most_heads, "num_query_heads");
  size(info.num_kv_heads, most_heads, "num_kv_heads");
  size(info.head_dim, most_dimensions, "head_dim");
  size(info.value_dim, most_dimensions, "value_dim");
  if (info.num_query_heads % info.num_kv_heads != 0) {
    throw Error(
        "{}: num_query_heads = {} is not a multiple of num_kv_heads = {}; every kv head must have the same number of "
        "query heads.",
        file, info.num_query_heads, info.num_kv_heads);
  }
  if (std::ranges::find(rope_types, info.rope_type) == rope_types.end()) {
    throw Error("{}: attribute 'rope_type' is '{}'; it must be one of {}.", file, info.rope_type,
                fmt::join(rope_types, ", "));
  }
  if (info.rope_layout != "half" && info.rope_layout != "interleaved") {
    throw Error("{}: attribute 'rope_layout' is '{}'; it must be 'half' or 'interleaved'.", file, info.rope_layout);
  }
}

/// The layers with a cache of their own: increasing numbers of layers, among them those of the trace.
void check_caches(const TraceInfo& info, const std::string& file) {
  const std::vector<std::int32_t>& caches = info.cache_layers;
  if (caches.empty()) return;
  const auto falls = std::ranges::adjacent_find(caches, std::greater_equal<>());
  if (falls != caches.end() || caches.front() < 0 || caches.back() >= info.num_layers)
    throw Error("{}: dataset 'cache_layers' must hold increasing numbers of layers below {}.", file, info.num_layers);
  for (const PromptInfo& prompt : info.prompts) {
    for (const LayerInfo& layer : prompt.layers) {
      if (std::ranges::binary_search(caches, layer.layer)) continue;
      throw Error("{}: dataset 'cache_layers' lacks layer {}, which the trace holds.", file, layer.layer);
    }
  }
}

void check_prompt(const PromptInfo& prompt, const std::string& file) {
  const std::string at = file + ": " + path_of(prompt);
  if (prompt.id.empty() || prompt.id == "." || prompt.id.find('/') != std::string::npos) {
    throw Error("{}: '{}' cannot name a prompt group.", file, prompt.id);
  }
  if (prompt.id == "all")
    throw Error("{}: a prompt cannot be named 'all', as the rows over all prompts are; rename its group.", file);
  const std::int64_t n = prompt.num_tokens;
  if (n < 1) throw Error("{}: num_tokens is {}; a prompt needs at least one token.", at, n);
  if (n > most_tokens) throw Error("{}: num_tokens is {}; a prompt has at most {} tokens.", at, n, most_tokens);
  if (static_cast<std::int64_t>(prompt.tokens.size()) != n) {
    throw Error("{}: dataset 'tokens' has {} entries, but attribute num_tokens is {}.", at, prompt.tokens.size(), n);
  }
  if (prompt.prompt_tokens < 1 || prompt.prompt_tokens > n) {
    throw Error("{}: prompt_tokens is {}; the context must end between 1 and num_tokens = {}.", at,
                prompt.prompt_tokens, n);
  }
  const std::int64_t start = prompt.answer_start.value_or(0);
  const std::int64_t end = prompt.answer_end.value_or(n);
  if (start < 0 || end > n || start > end) {
    throw Error("{}: answer_start = {} and answer_end = {} must be in order and in [0, {}].", at, start, end, n);
  }
  if (prompt.layers.empty()) throw Error("{}: no layers were recorded; dump at least one.", at);
}

void check_probes(const PromptInfo& prompt, const std::string& file) {
  const std::string at = file + ": " + path_of(prompt);
  const bool any = std::ranges::any_of(prompt.layers, [](const LayerInfo& layer) { return layer.probes; });
  if (!prompt.probes) {
    if (any) throw Error("{}: its layers have probes, but attribute 'num_probes' is missing; see docs/traces.md.", at);
    return;
  }
  const Probes& probes = *prompt.probes;
  check_name(probes.evaluated_in, at + ": attribute 'evaluated_in'");
  if (probes.count < 1 || probes.count > most_probes)
    throw Error("{}: num_probes is {}; it must be from 1 to {}.", at, probes.count, most_probes);
  const std::int64_t most = prompt.num_tokens - prompt.prompt_tokens;
  if (probes.tokens < 1 || probes.tokens > most) {
    throw Error("{}: scored_tokens is {}; it must be from 1 to {}, the number of tokens after the context.", at,
                probes.tokens, most);
  }
}

void check_anchors(const PromptInfo& prompt, const TraceInfo& info, const std::string& file) {
  if (!prompt.anchors) return;
  const std::string at = file + ": " + path_of(prompt) + "/anchors";
  if (!prompt.probes)
    throw Error("{}: attribute 'num_probes' of the prompt is missing; anchors are of the scored tokens of probes.", at);
  check_name(prompt.anchors->version, at + ": attribute 'version'");
  const std::vector<Anchor>& list = prompt.anchors->list;
  if (list.empty() || std::ssize(list) > most_anchors)
    throw Error("{}: has {} configurations; it must have from 1 to {}.", at, list.size(), most_anchors);
  std::set<std::tuple<std::string, std::string, std::int64_t>> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Anchor& anchor = list[i];
    check_name(anchor.method + anchor.budget, fmt::format("{}/configurations: line {}", at, i + 1));
    if (anchor.method.empty() || anchor.budget.empty() || anchor.budget.find(' ') != std::string::npos)
      throw Error("{}/configurations: line {} must be METHOD BUDGET.", at, i + 1);
    if (anchor.layer && (*anchor.layer < 0 || *anchor.layer >= info.num_layers)) {
      throw Error("{}/layers: entry {} is {}; it must be a layer below {}, or -1 for all.", at, i, *anchor.layer,
                  info.num_layers);
    }
    const auto damage = [&](double value, const char* name) {
      if (!std::isfinite(value) || value < 0)
        throw Error("{}/{}: entry {} is {}; a KL divergence is a finite number >= 0.", at, name, i, value);
    };
    damage(anchor.kl, "kl");
    if (!std::isnan(anchor.predicted)) damage(anchor.predicted, "predicted");
    if (!seen.emplace(anchor.method, anchor.budget, anchor.layer.value_or(-1)).second)
      throw Error("{}: line {} repeats '{} {}' of an earlier one.", at, i + 1, anchor.method, anchor.budget);
  }
}

void check_spans(const PromptInfo& prompt, const std::string& file) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < prompt.spans.size(); ++i) {
    const auto& [name, begin, end] = prompt.spans[i];
    const std::string at = fmt::format("{}: {}/spans: line {}", file, path_of(prompt), i + 1);
    check_name(name, at);
    if (!may_name_a_span(name) || begin < before || begin >= end || end > prompt.prompt_tokens) {
      throw Error(
          "{} is '{} {} {}'; begin and end are in order, in the context of {} tokens and without overlap, and a "
          "name has 1 to {} bytes and no comma.",
          at, begin, end, name, prompt.prompt_tokens, longest_span_name);
    }
    before = end;
  }
}

/// The scored tokens of a layer with probes are among its queries.
void check_scored(const LayerInfo& layer, const PromptInfo& prompt, const std::string& at) {
  if (!layer.probes) return;
  const auto first = std::ranges::lower_bound(layer.query_positions, prompt.prompt_tokens);
  const auto last = std::ranges::lower_bound(layer.query_positions, prompt.prompt_tokens + prompt.probes->tokens);
  if (last - first == prompt.probes->tokens) return;
  throw Error(
      "{}/probes: they are of the {} tokens from position {} on, of which {} have a query; record the queries of all "
      "scored tokens.",
      at, prompt.probes->tokens, prompt.prompt_tokens, last - first);
}

void check_positions(const LayerInfo& layer, std::int64_t n, const std::string& at) {
  if (layer.query_positions.empty()) throw Error("{}: no queries were recorded; dump at least one position.", at);
  std::int64_t previous = -1;
  for (std::size_t i = 0; i < layer.query_positions.size(); ++i) {
    const std::int64_t position = layer.query_positions[i];
    if (position < 0 || position >= n) {
      throw Error("{}/query_positions: entry {} is {}, outside [0, {}).", at, i, position, n);
    }
    if (position <= previous) {
      throw Error("{}/query_positions: entry {} is {} after {}; positions must increase.", at, i, position, previous);
    }
    previous = position;
  }
}

/// Values that are a part of the keys.
void check_latent(const LayerInfo& layer, const TraceInfo& info, const std::string& at) {
  if (layer.values_in_keys != info.values_in_keys())
    throw Error("{}: attribute 'values_in_keys' differs from that of the first layer; all layers have one.", at);
  if (!layer.values_in_keys) return;
  if (info.value_dim > info.head_dim) {
    throw Error("{}: its values are a part of its keys, but value_dim = {} is more than head_dim = {}.", at,
                info.value_dim, info.head_dim);
  }
  if (info.rope_type != "default") return;
  throw Error(
      "{}: its values are a part of its keys, and attribute 'rope_type' is 'default', which rotates all channels; "
      "write 'partial' where RoPE without scaling rotates those behind the values.",
      at);
}

void check_layer(const LayerInfo& layer, const PromptInfo& prompt, const TraceInfo& info, const std::string& file) {
  const std::string at = file + ": " + path_of(prompt, layer);
  if (layer.layer < 0 || layer.layer >= info.num_layers) {
    throw Error("{}: the model has num_layers = {}; there is no such layer.", at, info.num_layers);
  }
  if (layer.window < 0) throw Error("{}: attribute 'window' is {}; use 0 for full attention.", at, layer.window);
  const auto finite = [&](double value, const char* name, bool zero_allowed) {
    if (!std::isfinite(value) || value < 0 || (value == 0 && !zero_allowed)) {
      throw Error("{}: attribute '{}' is {}; it must be a finite number {} 0.", at, name, value,
                  zero_allowed ? ">=" : ">");
    }
  };
  finite(layer.rope_theta, "rope_theta", true);
  finite(layer.scale, "scale", false);
  finite(layer.softcap, "softcap", true);
  check_positions(layer, prompt.num_tokens, at);
  check_latent(layer, info, at);
  if (layer.column_sums_end && (*layer.column_sums_end < 1 || *layer.column_sums_end > prompt.num_tokens)) {
    throw Error("{}/column_sums: column_sums_end is {}, outside [1, {}].", at, *layer.column_sums_end,
                prompt.num_tokens);
  }
  check_scored(layer, prompt, at);
  if (!layer.output_sketch) return;
  const OutputSketch& sketch = *layer.output_sketch;
  if (sketch.columns < 1 || sketch.columns > most_dimensions)
    throw Error("{}/output_sketch: has {} columns; it must have from 1 to {}.", at, sketch.columns, most_dimensions);
  if (!std::isfinite(sketch.misfit) || sketch.misfit < 0)
    throw Error("{}/output_sketch: attribute 'misfit' is {}; it must be a finite number >= 0.", at, sketch.misfit);
}

}  // namespace

bool may_name_a_span(std::string_view name) {
  return !name.empty() && name.size() <= longest_span_name && name.find(',') == name.npos;
}

void check(const TraceInfo& info, const std::string& file) {
  check_names(info, file);
  check_model(info, file);
  check_caches(info, file);
  if (info.prompts.empty()) throw Error("{}: the trace holds no prompt; there is nothing to replay.", file);
  if (std::ssize(info.prompts) > most_prompts)
    throw Error("{}: the trace has {} prompts; it must have at most {}.", file, info.prompts.size(), most_prompts);
  std::set<std::string> ids;
  for (const PromptInfo& prompt : info.prompts) {
    check_prompt(prompt, file);
    check_probes(prompt, file);
    check_anchors(prompt, info, file);
    check_spans(prompt, file);
    if (!ids.insert(prompt.id).second) throw Error("{}: {} occurs twice.", file, path_of(prompt));
    int previous = -1;
    for (const LayerInfo& layer : prompt.layers) {
      check_layer(layer, prompt, info, file);
      if (layer.layer <= previous) throw Error("{}: {}: layers must increase.", file, path_of(prompt, layer));
      previous = layer.layer;
    }
  }
}

}  // namespace kvbench::trace
