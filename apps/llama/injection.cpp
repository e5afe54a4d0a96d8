// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/injection.hpp>

#include <algorithm>
#include <functional>
#include <utility>

#include <kvbench/core/error.hpp>

#include <apps/common/stop_signals.hpp>

namespace kvbench::llama {

Injector::Injector(CaptureOptions options, int num_layers) : capture_(options), num_layers_(num_layers) {}

void Injector::begin(std::int64_t offset, int count, Replace replace, bool whole) {
  active_ = scoring_ = true;
  count_ = count;
  replace_ = std::move(replace);
  layers_.assign(static_cast<std::size_t>(num_layers_), {});
  capture_.begin_batch(offset, count, whole);
}

std::vector<LayerPass> Injector::end() {
  scoring_ = false;
  replace_ = nullptr;
  error_.rethrow();
  app::stop_if_requested();
  capture_.end_batch();
  return std::move(layers_);
}

bool Injector::on_node(ggml_tensor* node, bool ask, void* self) {
  auto& injector = *static_cast<Injector*>(self);
  if (!injector.active_) return !ask;
  bool wanted = true;
  const bool done = injector.error_.attempt([&] {
    if (ask)
      wanted = injector.asks(node);
    else
      injector.take(node);
  });
  return done && wanted;
}

bool Injector::stop(void* self) {
  auto& injector = *static_cast<Injector*>(self);
  return injector.error_.kept() || Capture::stop(&injector.capture_);
}

bool Injector::asks(const ggml_tensor* node) {
  const bool captured = Capture::on_node(const_cast<ggml_tensor*>(node), true, &capture_);
  const auto name = parse_node_name(node->name);
  if (!scoring_ || !name || name->layer >= num_layers_) return captured;
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
  const bool compared = !replacement.exact.empty();
  if (std::ssize(replacement.outputs) != heads * m * dv ||
      (compared && replacement.exact.size() != replacement.outputs.size()) || node->type != GGML_TYPE_F32 ||
      !ggml_is_contiguous(node)) {
    throw Error("layer {}: its attention output cannot be replaced: the node '{}' has another shape or type", layer,
                node->name);
  }
  std::vector<float> rows = by_token(replacement.outputs, heads, m);
  std::vector<float> exact;
  if (compared) {
    exact = by_token(replacement.exact, heads, m);
    layers_[layer].residual = residual_shares(rows, exact, layer);
  }
  if (replacement.scale == 0) return;
  if (compared && replacement.scale != 1) {  // otherwise the outputs keep their bits
    std::ranges::transform(rows, exact, rows.begin(), [&](float output, float of_model) {
      return static_cast<float>(of_model + replacement.scale * (double(output) - of_model));
    });
  }
  ggml_backend_tensor_set(node, rows.data(), 0, rows.size() * sizeof(float));
}

std::vector<double> Injector::residual_shares(const std::vector<float>& outputs, const std::vector<float>& exact,
                                              int layer) {
  const ResidualPath& path = capture_.residual_path();
  const ggml_tensor* stream = path.stream(layer);
  if (stream == nullptr || !path.knows(layer)) return {};
  std::vector<float> difference(outputs.size());
  std::ranges::transform(outputs, exact, difference.begin(), std::minus());
  if (path.has_norm(layer)) {  // otherwise the way is linear, and loses no digits to the subtraction
    difference = path.added(outputs, layer);
    std::ranges::transform(difference, path.added(exact, layer), difference.begin(), std::minus());
  } else {
    difference = path.added(difference, layer);
  }
  const HeadRows streams(stream, 1);
  const std::size_t width = difference.size() / static_cast<std::size_t>(count_);
  std::vector<double> shares;
  for (int i = 0; i < count_; ++i) {
    const std::span row = std::span(difference).subspan(static_cast<std::size_t>(i) * width, width);
    shares.push_back(norm(row) / norm({streams.row(i, 0), static_cast<std::size_t>(streams.dim)}));
  }
  return shares;
}

}  // namespace kvbench::llama
