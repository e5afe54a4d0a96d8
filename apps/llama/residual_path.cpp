// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/residual_path.hpp>

#include <algorithm>
#include <cmath>

#include <ggml-backend.h>

#include <apps/llama/graph.hpp>
#include <apps/llama/node_name.hpp>

namespace kvbench::llama {
namespace {

/// The residual stream that the attention input of a layer normalises; null where the graph has another form.
const ggml_tensor* before_norm(const ggml_tensor* input) {
  while (input != nullptr && (input->op == GGML_OP_MUL || input->op == GGML_OP_ADD)) input = input->src[0];
  return input != nullptr && (input->op == GGML_OP_RMS_NORM || input->op == GGML_OP_NORM) ? input->src[0] : nullptr;
}

/// The layer whose attention output this node projects.
std::optional<int> projected_layer(const ggml_tensor* node) {
  if (node->op != GGML_OP_MUL_MAT || node->src[1] == nullptr) return std::nullopt;
  const auto name = parse_node_name(node->src[1]->name);
  return name && name->role == Role::output ? std::optional(name->layer) : std::nullopt;
}

bool is_weight(const ggml_tensor* node) { return node != nullptr && node->op == GGML_OP_NONE; }

}  // namespace

std::vector<float> by_token(std::span<const float> by_head, std::int64_t heads, std::int64_t rows) {
  const std::int64_t dim = std::ssize(by_head) / (heads * rows);
  std::vector<float> out(by_head.size());
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < rows; ++i)
      std::copy_n(by_head.begin() + (h * rows + i) * dim, dim, out.begin() + (i * heads + h) * dim);
  }
  return out;
}

double norm(std::span<const float> row) {
  double sum = 0;
  for (const float x : row) sum += static_cast<double>(x) * x;
  return std::sqrt(sum);
}

ResidualPath::ResidualPath(int threads) : graph_(threads) {}

void ResidualPath::note(const ggml_tensor* node) {
  if (const auto name = parse_node_name(node->name); name && name->role == Role::attention_input)
    streams_[name->layer] = before_norm(node);
  if (const auto layer = projected_layer(node)) {
    layers_[*layer] = {.projection = node->src[0]};
    end_ = node, layer_ = *layer;
  } else if (end_ != nullptr && node->src[0] == end_) {
    end_ = extend(layers_.at(layer_), node) ? node : nullptr;
  }
}

/// Whether the node belongs to the way. One that this class cannot compute removes the layer.
bool ResidualPath::extend(Layer& layer, const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_GET_ROWS:  // the last layer goes on with the rows of outputs
      return true;
    case GGML_OP_ADD:
      layer.biased = is_weight(node->src[1]);
      return layer.biased;  // otherwise it is the sum with the stream
    case GGML_OP_SCALE:
      layer.factor *= float_parameter(node, 0);
      return true;
    case GGML_OP_RMS_NORM:
      if (layer.biased || layer.norm || layer.factor != 1) break;
      layer.norm = {.eps = float_parameter(node, 0)};
      return true;
    case GGML_OP_MUL:
      if (!layer.norm || layer.norm->weight != nullptr || !is_weight(node->src[1])) break;
      layer.norm->weight = node->src[1];
      return true;
    default:
      break;
  }
  layers_.erase(layer_);
  return false;
}

const ggml_tensor* ResidualPath::stream(int layer) const {
  const auto found = streams_.find(layer);
  return found == streams_.end() ? nullptr : found->second;
}

std::vector<float> ResidualPath::run(std::span<const float> inputs, const Layer& layer, bool whole) const {
  const ggml_context_ptr context = CpuGraph::nodes();
  const std::int64_t size = layer.projection->ne[0];
  ggml_tensor* rows = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, size, std::ssize(inputs) / size);
  ggml_tensor* result = ggml_mul_mat(context.get(), layer.projection, rows);
  if (whole && layer.norm) {
    result = ggml_rms_norm(context.get(), result, layer.norm->eps);
    if (layer.norm->weight != nullptr) result = ggml_mul(context.get(), result, layer.norm->weight);
  }
  if (whole && layer.factor != 1) result = ggml_scale(context.get(), result, layer.factor);
  return graph_.run(context.get(), result, {{rows, std::as_bytes(inputs)}});
}

std::vector<float> ResidualPath::added(std::span<const float> outputs, int layer) const {
  return run(outputs, layers_.at(layer), true);
}

ResidualPath::Weights ResidualPath::weights(int number) const {
  const Layer& layer = layers_.at(number);
  Weights weights{.inputs = layer.projection->ne[0], .width = layer.projection->ne[1], .factor = layer.factor};
  // Products with unit vectors, because the back end may have stored the weights in an order of its own.
  std::vector<float> unit(static_cast<std::size_t>(weights.inputs * weights.inputs));
  for (std::int64_t i = 0; i < weights.inputs; ++i) unit[static_cast<std::size_t>(i * (weights.inputs + 1))] = 1;
  weights.projection = run(unit, layer, false);
  if (!layer.norm) return weights;
  weights.eps = layer.norm->eps;
  weights.norm.assign(static_cast<std::size_t>(weights.width), 1);
  if (const ggml_tensor* weight = layer.norm->weight)
    ggml_backend_tensor_get(weight, weights.norm.data(), 0, weights.norm.size() * sizeof(float));
  return weights;
}

}  // namespace kvbench::llama
