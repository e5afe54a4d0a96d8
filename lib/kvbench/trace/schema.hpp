// SPDX-License-Identifier: Apache-2.0
// Contents of a trace file (schema 1.0): one model and one or more prompts; per layer the post-RoPE queries, keys and
// values that the model used. These structs are the description in the file; docs/traces.md explains the schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvbench::trace {

inline constexpr int schema_major = 1;
inline constexpr int schema_minor = 0;

/// Largest sizes that a trace may state: larger ones are damage or a mistake. The numbers of elements of arrays of
/// these sizes fit into 64 bits.
inline constexpr std::int64_t most_tokens = 1 << 24;
inline constexpr std::int64_t most_layers = 65535;
inline constexpr std::int64_t most_heads = 65535;
inline constexpr std::int64_t most_dimensions = 16384;
inline constexpr std::int64_t most_prompts = 65535;
inline constexpr std::int64_t most_probes = 512;
inline constexpr std::int64_t most_anchors = 1 << 17;
inline constexpr std::size_t longest_span_name = 64;  ///< bytes

enum class Dtype {
  f32,
  f16,
  bf16,
  i8  ///< of probes alone, with a scale per row; never that of a trace
};

/// Gradients that say what an error of attention outputs does to the next-token distributions (docs/damage.md). Each is
/// the gradient of a random sum of the logits of the scored tokens, whose weights have the covariance
/// diag(p_t) - p_t p_t', with respect to the attention outputs of these tokens in every layer, in nats per unit of
/// attention output.
struct Probes {
  std::int64_t count = 0;    ///< R
  std::int64_t tokens = 0;   ///< T: the scored tokens have the positions prompt_tokens .. prompt_tokens + T - 1
  std::int64_t seed = 0;     ///< of the Philox generator that drew the sums
  std::string evaluated_in;  ///< element types in which the model was evaluated, for display

  bool operator==(const Probes&) const = default;
};

/// A configuration whose damage was measured in the model, on the scored tokens of the probes of a prompt.
struct Anchor {
  std::string method;                 ///< with its settings, as --method reads it
  std::string budget;                 ///< as --budget reads it
  std::optional<std::int64_t> layer;  ///< the only one that is compressed; absent: all in which methods run
  double kl = 0;                      ///< mean KL divergence from the full cache, nats per scored token
  /// kl_predicted of a replay of this prompt, nats per scored token; with `layer`, that of the layer alone. NaN: none.
  double predicted = 0;

  /// Predictions that are NaN are equal.
  bool operator==(const Anchor& other) const;
};

struct Anchors {
  std::string version;       ///< of the kvbench that measured and predicted
  std::vector<Anchor> list;  ///< no configuration twice

  bool operator==(const Anchors&) const = default;
};

/// Tokens [begin, end) of a context that belong together, such as those of a message. Spans of one name are one part.
struct Span {
  std::string name;  ///< not empty, without commas
  std::int64_t begin = 0, end = 0;

  bool operator==(const Span&) const = default;
};

/// W_O of a layer, times a Gaussian matrix: |dz' S| estimates the norm of what an error dz of the attention output of
/// all query heads adds to the residual stream.
struct OutputSketch {
  std::int64_t columns = 0;  ///< s
  std::int64_t seed = 0;     ///< of the Gaussian matrix
  /// Where a norm follows W_O, the map is linear near each query alone: root mean square of the difference between the
  /// maps of single queries, each divided by its norm, and the one that is stored. 0: the map is linear.
  double misfit = 0;

  bool operator==(const OutputSketch&) const = default;
};

/// One attention layer of one prompt. Shapes: n = num_tokens, m = query_positions.size(), d = head_dim, dv = value_dim.
struct LayerInfo {
  int layer = 0;
  std::int64_t window = 0;                    ///< sliding-window length in tokens; 0 = full causal attention
  double rope_theta = 0;                      ///< base of the rotary embedding; 0: no rotary embedding
  double scale = 0;                           ///< logits are scale * <q, k>
  double softcap = 0;                         ///< logits become softcap * tanh(logit / softcap); 0 = none
  std::vector<std::int64_t> query_positions;  ///< strictly increasing, each in [0, n)
  /// MLA: the values are the first dv channels of the keys, the latent of a token, which is stored once; the others are
  /// its rotary key. Keys, values and queries are those of the absorbed form (docs/traces.md).
  bool values_in_keys = false;
  /// column_sums cover the queries 0 .. column_sums_end - 1; absent: no column sums
  std::optional<std::int64_t> column_sums_end;
  bool keys_pre_rope = false;
  bool queries_pre_rope = false;
  bool speculated_queries = false;
  bool attention_output = false;
  bool residual_norm = false;
  std::optional<OutputSketch> output_sketch;
  bool probes = false;

  /// Whether methods run in the layer: a sliding window bounds its cache, and no method is defined on capped logits.
  bool has_methods() const { return window == 0 && softcap == 0; }
  bool operator==(const LayerInfo&) const = default;
};

struct PromptInfo {
  std::string id;                  ///< name of the group below /prompts
  std::string name;                ///< attribute `name`
  std::int64_t num_tokens = 0;     ///< n
  std::int64_t prompt_tokens = 0;  ///< length of the context, after which decoding begins; n where nothing was decoded
  std::optional<std::int64_t> answer_start, answer_end;
  std::optional<std::string> text;
  std::optional<Probes> probes;      ///< absent: no layer has probes
  std::optional<Anchors> anchors;    ///< only with probes
  std::vector<Span> spans = {};      ///< of the context, ascending, without overlap
  std::vector<std::int32_t> tokens;  ///< [n]
  std::vector<LayerInfo> layers;     ///< by increasing layer

  bool operator==(const PromptInfo&) const = default;
};

struct TraceInfo {
  std::string model, arch, quantisation, source_tool, source_version, created;
  std::int64_t num_layers = 0;  ///< of the model; the trace may have fewer
  /// Numbers of the layers that have a cache of their own, increasing; empty: all. Plans over layers count these alone.
  std::vector<std::int32_t> cache_layers;
  std::int64_t num_query_heads = 0;
  std::int64_t num_kv_heads = 0;  ///< query head h uses kv head h / (num_query_heads / num_kv_heads)
  std::int64_t head_dim = 0;      ///< d
  std::int64_t value_dim = 0;     ///< dv
  std::string rope_type;          ///< "default", "none", "yarn", ...
  std::string rope_layout;        ///< "half" or "interleaved"
  Dtype dtype = Dtype::f32;
  std::vector<PromptInfo> prompts;  ///< in the numeric, then alphabetic order of their group names
  /// of the arrays in the file, bytes before compression; 0: not in chunks; set by Reader
  std::uint64_t largest_chunk = 0;

  /// The order of the channels of keys and queries: rope_layout; "" where it has no meaning, because the model has no
  /// rotary embedding, or because how it pairs channels was not measured.
  std::string channel_order() const { return rope_type == "none" || rope_type == "unknown" ? "" : rope_layout; }
  std::int64_t group() const { return num_query_heads / num_kv_heads; }
  /// LayerInfo::values_in_keys, which all layers share.
  bool values_in_keys() const {
    return !prompts.empty() && !prompts[0].layers.empty() && prompts[0].layers[0].values_in_keys;
  }
  /// Numbers that a cache holds per token and kv head.
  std::int64_t token_numbers() const { return head_dim + (values_in_keys() ? 0 : value_dim); }
  /// Layers of the model that have a cache of their own, and the index of one of them among these.
  std::int64_t num_caches() const { return cache_layers.empty() ? num_layers : std::ssize(cache_layers); }
  std::int64_t depth_of(std::int64_t layer) const;
  /// Of how many layers so many are a part: of those with a cache. 0 where these are not all of them, and others have
  /// none: their numbers do not say how they are spread.
  std::int64_t layers_behind(std::size_t count) const;
  bool operator==(const TraceInfo&) const = default;
};

/// The arrays of one layer, by dataset name. The number of heads is num_kv_heads or num_query_heads, depending on the
/// array; residual_norm counts as one head.
enum class Array {
  keys,
  values,
  queries,
  column_sums,
  keys_pre_rope,
  queries_pre_rope,
  speculated_queries,
  attention_output,
  residual_norm,  ///< norm of the residual stream before the layer, over the gain of a norm after W_O
  output_sketch,
  probes,       ///< row r * T + t: probe r, scored token t
  probe_scales  ///< of the rows of probes, which are stored as 8-bit integers; Reader and Writer apply them
};

const char* name_of(Array array);
const char* name_of(Dtype dtype);

}  // namespace kvbench::trace
