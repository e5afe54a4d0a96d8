// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/capture.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>

#include <apps/common/stop_signals.hpp>

namespace kvbench::llama {
namespace {

std::int64_t& reached(std::array<std::int64_t, 9>& by_role, Role role) {
  return by_role[static_cast<std::size_t>(role)];
}

/// Measured error: 0, in fp32 and with quantised weights, in batches and steps. An error in bias, norm or rotation
/// gives at least 1e-2.
constexpr double path_tolerance = 1e-5;

constexpr const char* no_rotated_queries = "its graph has no queries with rotary position embedding (RoPE)";

}  // namespace

Capture::Capture(CaptureOptions options) : options_(std::move(options)), residual_path_(options_.threads) {
  slot_of_layer_.assign(static_cast<std::size_t>(options_.layers.back()) + 1, -1);
  for (std::size_t slot = 0; slot < options_.layers.size(); ++slot) {
    slot_of_layer_[options_.layers[slot]] = static_cast<int>(slot);
  }
  if (!options_.speculated) return;
  query_path_.emplace(options_.threads);
  for (const int layer : options_.layers) {
    if (layer > 0) inputs_[layer - 1], inputs_[layer];
  }
}

void Capture::start_prompt(std::int64_t num_tokens, std::vector<std::int64_t> query_positions,
                           std::int64_t column_sums_end) {
  num_tokens_ = num_tokens;
  column_sums_end_ = column_sums_end;
  query_positions_ = std::move(query_positions);
  layers_.assign(options_.layers.size(), {});
  for (std::size_t slot = 0; slot < layers_.size(); ++slot) {
    layers_[slot].data.layer = options_.layers[slot];
    layers_[slot].data.num_tokens = num_tokens;
    layers_[slot].data.query_positions = query_positions_;
  }
}

void Capture::begin_batch(std::int64_t offset, int count, bool whole) {
  offset_ = offset;
  whole_ = whole;
  count_ = count;
  mask_node_ = nullptr;
  key_rows_.resize(static_cast<std::size_t>(count));
  query_rows_.assign(static_cast<std::size_t>(count), -1);
  stored_.clear();
  for (auto& [layer, input] : inputs_) input = {};
  for (Layer& layer : layers_) layer.reached.fill(offset);  // a batch may be repeated
  for (int i = 0; i < count; ++i) {
    key_rows_[i] = offset + i;
    const auto at = std::lower_bound(query_positions_.begin(), query_positions_.end(), offset + i);
    if (at == query_positions_.end() || *at != offset + i) continue;
    query_rows_[i] = at - query_positions_.begin();
    stored_.push_back(i);
  }
}

void Capture::end_batch() {
  error_.rethrow();
  static constexpr std::pair<Role, const char*> needed[] = {
      {Role::query, no_rotated_queries},
      {Role::key, "its graph has no keys with rotary position embedding (RoPE)"},
      {Role::value, "its graph has no values with the number of kv heads of the model"},
      {Role::softmax, "its graph has no softmax attention"},
      {Role::output, "its graph has no attention output"},
  };
  for (Layer& layer : layers_) {
    for (const auto& [role, missing] : needed) {
      if (reached(layer.reached, role) == offset_ + count_ || (role == Role::softmax && !whole_)) continue;
      refuse_layer(layer.data.layer, missing);
    }
  }
}

void Capture::require_same_shapes() const {
  const LayerCapture& first = layers_.front().data;
  for (const Layer& layer : layers_) {
    const LayerCapture& last = layer.data;
    if (last.query_heads == first.query_heads && last.kv_heads == first.kv_heads && last.head_dim == first.head_dim &&
        last.value_dim == first.value_dim && last.parameters.rope_layout == first.parameters.rope_layout) {
      continue;
    }
    throw Error(
        "layers {} and {} differ in heads or dimensions; all layers of a trace must have the same shape: select layers "
        "with --layers",
        first.layer, last.layer);
  }
}

std::vector<LayerCapture> Capture::take() {
  require_same_shapes();
  std::vector<LayerCapture> captures;
  for (Layer& layer : layers_) captures.push_back(std::move(layer.data));
  layers_.clear();
  return captures;
}

void Capture::restore(const std::vector<LayerCapture>& captured) {
  for (std::size_t slot = 0; slot < layers_.size(); ++slot) layers_[slot].data = captured[slot];
}

const LayerCapture* Capture::layer(int number) const {
  const bool recorded = number < static_cast<int>(slot_of_layer_.size()) && slot_of_layer_[number] >= 0;
  return recorded ? &layers_[slot_of_layer_[number]].data : nullptr;
}

bool Capture::on_node(ggml_tensor* node, bool ask, void* self) {
  auto& capture = *static_cast<Capture*>(self);
  bool wanted = true;
  const bool done = capture.error_.attempt([&] {
    if (ask)
      wanted = capture.wants(node);
    else
      capture.take_node(node);
  });
  return done && wanted;
}

bool Capture::stop(void* self) { return app::stop_requested() || static_cast<Capture*>(self)->error_.kept(); }

Capture::Layer* Capture::layer_of(const ggml_tensor* node, Role& role) {
  const auto name = parse_node_name(node->name);
  if (!name || name->layer >= static_cast<int>(slot_of_layer_.size()) || slot_of_layer_[name->layer] < 0)
    return nullptr;
  role = name->role;
  return &layers_[slot_of_layer_[name->layer]];
}

bool Capture::wants(const ggml_tensor* node) {
  residual_path_.note(node);
  Role role{};
  const Layer* layer = layer_of(node, role);
  if (const auto name = parse_node_name(node->name); name && name->role == Role::attention_input) {
    const bool wanted = inputs_.contains(name->layer) || (options_.residual_norm && layer != nullptr);
    return wanted && node->ne[1] == count_;
  }
  if (layer == nullptr) return false;
  const bool rows_of_heads = node->ne[2] == count_ && node->ne[3] == 1;
  switch (role) {
    case Role::query:
    case Role::key:
      return rows_of_heads && (node->op == GGML_OP_ROPE || options_.pre_rope);
    case Role::normed_query:
    case Role::normed_key:
      return rows_of_heads && options_.pre_rope;
    case Role::value:
      return rows_of_heads && node->ne[1] == options_.kv_heads;
    case Role::softmax:
      return node->op == GGML_OP_SOFT_MAX && whole_;
    case Role::output:
      return node->ne[1] == count_;
    case Role::attention_input:
    case Role::hidden:
      break;
  }
  return false;
}

void Capture::take_node(const ggml_tensor* node) {
  Role role{};
  Layer* recorded = layer_of(node, role);
  if (const auto name = parse_node_name(node->name); name->role == Role::attention_input) {
    if (options_.residual_norm && recorded != nullptr) take_residual_norm(recorded->data);
    if (inputs_.contains(name->layer)) take_attention_input(node, name->layer);
    return;
  }
  Layer& layer = *recorded;
  switch (role) {
    case Role::query:
    case Role::key:
      if (node->op == GGML_OP_ROPE) return take_rotated(layer, role, node);
      [[fallthrough]];
    case Role::normed_query:
    case Role::normed_key:
      return take_rope_input(layer, role, node);
    case Role::value: {  // the last node of this name is used
      const HeadRows rows(node);
      layer.data.value_dim = rows.dim;
      rows.scatter(key_rows_, num_tokens_, layer.data.values);
      break;
    }
    case Role::softmax:
      take_softmax(layer, node);
      break;
    case Role::output:
      HeadRows(node, options_.query_heads).scatter(query_rows_, std::ssize(query_positions_), layer.data.output);
      break;
    case Role::attention_input:
    case Role::hidden:
      break;
  }
  reached(layer.reached, role) = offset_ + count_;
}

void Capture::take_rope_input(Layer& layer, Role role, const ggml_tensor* node) {
  const bool query = role == Role::query || role == Role::normed_query;
  if (reached(layer.reached, query ? Role::query : Role::key) == offset_ + count_)
    return;  // this node is computed after RoPE
  (query ? layer.query_input : layer.key_input) = node;
  if (query) return HeadRows(node).scatter(query_rows_, std::ssize(query_positions_), layer.data.queries_pre_rope);
  HeadRows(node).scatter(key_rows_, num_tokens_, layer.data.keys_pre_rope);
}

void Capture::take_rotated(Layer& layer, Role role, const ggml_tensor* node) {
  const bool query = role == Role::query;
  if (options_.pre_rope && node->src[0] != (query ? layer.query_input : layer.key_input)) {
    throw Error("layer {}: the {} before RoPE were not found in the graph of this model; omit --pre-rope",
                layer.data.layer, query ? "queries" : "keys");
  }
  const HeadRows rows(node);
  reached(layer.reached, role) = offset_ + count_;
  if (query) {
    layer.query_rope = node;
    layer.data.query_heads = rows.heads;
    rows.scatter(query_rows_, std::ssize(query_positions_), layer.data.queries);
    if (options_.speculated && layer.data.layer > 0) speculate(layer, node);
    return;
  }
  layer.data.kv_heads = rows.heads;
  layer.data.head_dim = rows.dim;
  rows.scatter(key_rows_, num_tokens_, layer.data.keys);
}

void Capture::take_attention_input(const ggml_tensor* node, int layer) {
  const HeadRows rows(node, 1);
  AttentionInput& input = inputs_[layer];
  input.node = node;
  input.rows.clear();
  for (const std::int32_t token : stored_) {
    const float* row = rows.row(token, 0);
    input.rows.insert(input.rows.end(), row, row + rows.dim);
  }
}

// The node that is normalised stays in memory until attention has been added to it.
void Capture::take_residual_norm(LayerCapture& data) const {
  const ggml_tensor* stream = residual_path_.stream(data.layer);
  if (stream == nullptr) return;
  const HeadRows rows(stream, 1);
  data.residual_norm.resize(query_positions_.size());
  for (const std::int32_t token : stored_) {
    const std::span row(rows.row(token, 0), static_cast<std::size_t>(rows.dim));
    data.residual_norm[query_rows_[token]] = static_cast<float>(norm(row));
  }
}

// As a check, the queries are also computed from the input of the layer itself; they must equal the queries of the
// layer.
void Capture::speculate(Layer& layer, const ggml_tensor* rope) {
  if (stored_.empty()) return;
  const AttentionInput &before = inputs_[layer.data.layer - 1], &own = inputs_[layer.data.layer];
  if (before.node == nullptr || own.node == nullptr) {
    throw Error(
        "layer {}: its queries cannot be speculated: the graph has no normalised attention input (attn_norm) for layer "
        "{}. Omit --speculated, or exclude the layer with --layers.",
        layer.data.layer, layer.data.layer - (before.node == nullptr));
  }
  std::vector<float> inputs = before.rows;
  inputs.insert(inputs.end(), own.rows.begin(), own.rows.end());
  std::vector<std::int32_t> positions;
  for (int copy = 0; copy < 2; ++copy) {
    for (const std::int32_t token : stored_) positions.push_back(static_cast<std::int32_t>(offset_) + token);
  }
  const auto queries = query_path_->run(rope, own.node, count_, layer.data.layer, inputs, positions);
  store_speculated(layer.data, queries, HeadRows(rope));
}

void Capture::store_speculated(LayerCapture& data, const std::vector<float>& queries, const HeadRows& own) const {
  const auto m = std::ssize(query_positions_);
  const std::int64_t heads = own.heads, dim = own.dim;
  data.speculated.resize(static_cast<std::size_t>(heads * m * dim));
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* guess = &queries[(i * heads + head) * dim];
      const float* again = &queries[((stored_.size() + i) * heads + head) * dim];
      const float* truth = own.row(stored_[i], head);
      std::copy_n(guess, dim, data.speculated.begin() + (head * m + query_rows_[stored_[i]]) * dim);
      for (std::int64_t c = 0; c < dim; ++c) {
        difference += std::pow(double{again[c]} - truth[c], 2);
        size += std::pow(double{truth[c]}, 2);
      }
    }
  }
  if (difference <= std::pow(path_tolerance, 2) * size) return;
  throw Error(
      "layer {}: its queries cannot be speculated: computed from the input of the layer itself they differ by {:.2g} "
      "(tolerance {:.0e}). Omit --speculated, or report the model.",
      data.layer, std::sqrt(difference / size), path_tolerance);
}

void Capture::take_softmax(Layer& layer, const ggml_tensor* node) {
  if (reached(layer.reached, Role::query) != offset_ + count_) refuse_layer(layer.data.layer, no_rotated_queries);
  const auto found = read_attention(node, layer.data.layer, options_.rope_scaling);
  if (found.rope != layer.query_rope) {
    refuse_layer(layer.data.layer, "its softmax does not use the node that is named as its queries");
  }
  layer.data.parameters = found.parameters;
  if (node->src[1] != mask_node_) {
    mask_ = read_mask(node->src[1], offset_, count_, layer.data.layer);
    mask_node_ = node->src[1];
  }
  layer.mask.merge(mask_, layer.data.layer);
  layer.data.parameters.window = layer.mask.window;
  if (options_.column_sums) add_column_sums(layer, node);
}

// Uses the probabilities of the model, [cells, tokens, heads] in fp32, and sums them in fp64.
void Capture::add_column_sums(Layer& layer, const ggml_tensor* node) {
  const HeadRows rows(node);  // the dimensions of tokens and heads are exchanged
  const std::int64_t tokens = std::clamp<std::int64_t>(column_sums_end_ - offset_, 0, count_);
  layer.data.column_sums.resize(static_cast<std::size_t>(rows.tokens * num_tokens_));
  parallel_for(static_cast<std::size_t>(rows.tokens), allowed_threads(0), [&](std::size_t h, std::size_t) {
    const auto head = static_cast<std::int64_t>(h);
    double* sums = &layer.data.column_sums[head * num_tokens_];
    for (std::int64_t i = 0; i < tokens; ++i) {
      const float* row = rows.row(head, i);
      for (std::int64_t j = 0; j <= offset_ + i; ++j) sums[j] += row[j];
    }
  });
}

}  // namespace kvbench::llama
