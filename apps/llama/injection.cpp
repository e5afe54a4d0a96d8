// SPDX-License-Identifier: Apache-2.0
#include "injection.hpp"

#include <cmath>
#include <utility>

#include <kvbench/core/error.hpp>

#include "../stop_signals.hpp"

namespace kvbench::llama {
namespace {

double norm(std::span<const float> row) {
  double sum = 0;
  for (const float x : row) sum += static_cast<double>(x) * x;
  return std::sqrt(sum);
}

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

}  // namespace

Injector::Injector(CaptureOptions options, int num_layers)
    : capture_(options), graph_(options.threads), num_layers_(num_layers) {}

void Injector::begin(std::int64_t offset, int count, Replace replace, bool whole) {
  active_ = scoring_ = true;
  count_ = count;
  replace_ = std::move(replace);
  layers_.assign(static_cast<std::size_t>(num_layers_), {});
  residual_streams_.clear();
  capture_.begin_batch(offset, count, whole);
}

std::vector<LayerPass> Injector::end() {
  scoring_ = false;
  replace_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  app::stop_if_requested();
  capture_.end_batch();
  return std::move(layers_);
}

bool Injector::on_node(ggml_tensor* node, bool ask, void* self) {
  auto& injector = *static_cast<Injector*>(self);
  if (!injector.active_) return !ask;
  if (injector.error_) return false;
  try {
    if (ask) return injector.asks(node);
    injector.take(node);
    return !injector.error_;
  } catch (...) {
    injector.error_ = std::current_exception();
    return false;
  }
}

bool Injector::stop(void* self) {
  auto& injector = *static_cast<Injector*>(self);
  return injector.error_ || Capture::stop(&injector.capture_);
}

bool Injector::asks(const ggml_tensor* node) {
  if (const auto layer = projected_layer(node)) projections_[*layer] = node->src[0];
  const bool captured = Capture::on_node(const_cast<ggml_tensor*>(node), true, &capture_);
  const auto name = parse_node_name(node->name);
  if (!scoring_ || !name || name->layer >= num_layers_) return captured;
  if (name->role == Role::attention_input) residual_streams_[name->layer] = before_norm(node);
  return captured || (name->role == Role::hidden && node->ne[1] == count_);
}

void Injector::take(ggml_tensor* node) {
  const auto name = parse_node_name(node->name);
  if (name->role == Role::hidden) {
    const HeadRows rows(node, 1);
    for (std::int64_t i = 0; i < rows.tokens; ++i) {
      std::vector<float>& hidden = layers_[name->layer].hidden;
      hidden.insert(hidden.end(), rows.row(i, 0), rows.row(i, 0) + rows.dim);
    }
    return;
  }
  if (!Capture::on_node(node, false, &capture_)) return;  // end_batch() reports why
  if (scoring_ && replace_ && name->role == Role::output) replace_outputs(node, name->layer);
}

void Injector::replace_outputs(ggml_tensor* node, int layer) {
  const LayerCapture& captured = *capture_.layer(layer);
  const Replacement replacement = replace_(captured);
  if (replacement.outputs.empty()) return;
  const std::int64_t heads = captured.query_heads, dv = captured.value_dim, m = count_;
  if (std::ssize(replacement.outputs) != heads * m * dv || replacement.exact.size() != replacement.outputs.size() ||
      node->type != GGML_TYPE_F32 || !ggml_is_contiguous(node)) {
    throw Error("layer {}: its attention output cannot be replaced: the node '{}' has another shape or type", layer,
                node->name);
  }
  std::vector<float> rows(replacement.outputs.size()), delta(rows.size());
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t c = 0; c < dv; ++c) {
        const std::int64_t from = (h * m + i) * dv + c, to = (i * heads + h) * dv + c;
        rows[to] = replacement.outputs[from];
        delta[to] = rows[to] - replacement.exact[from];
      }
    }
  }
  layers_[layer].residual = residual_shares(node, delta, layer);
  if (replacement.inject) ggml_backend_tensor_set(node, rows.data(), 0, rows.size() * sizeof(float));
}

std::vector<double> Injector::residual_shares(const ggml_tensor* node, const std::vector<float>& delta, int layer) {
  const ggml_tensor* stream = residual_streams_[layer];
  ggml_tensor* projection = projections_[layer];
  if (stream == nullptr || projection == nullptr) return {};
  const ggml_context_ptr context = CpuGraph::nodes();
  ggml_tensor* input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, node->ne[0], count_);
  const std::vector<float> added =
      graph_.run(context.get(), ggml_mul_mat(context.get(), projection, input), {{input, std::as_bytes(std::span(delta))}});
  const HeadRows streams(stream, 1);
  const std::size_t width = added.size() / static_cast<std::size_t>(count_);
  std::vector<double> shares;
  for (int i = 0; i < count_; ++i) {
    const std::span row = std::span(added).subspan(static_cast<std::size_t>(i) * width, width);
    shares.push_back(norm(row) / norm({streams.row(i, 0), static_cast<std::size_t>(streams.dim)}));
  }
  return shares;
}

}  // namespace kvbench::llama
