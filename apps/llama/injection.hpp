// SPDX-License-Identifier: Apache-2.0
// Replaces attention outputs in the graph of llama.cpp while it runs, and reads what the replacement does to the hidden
// states.
#pragma once

#include <functional>

#include <apps/llama/capture.hpp>

namespace kvbench::llama {

/// The attention outputs of a layer for the tokens of the batch, computed from what has been captured.
struct Replacement {
  std::vector<float> outputs;  ///< [query_heads, count, value_dim]; empty: those of the model remain
  std::vector<float> exact;    ///< the same of exact attention over what has been captured; empty: not compared
  double scale = 1;            ///< of their error, which the model gets; 0: they are compared only, and its own remain
};
/// It may throw, which ends the pass.
using Replace = std::function<Replacement(const LayerCapture&)>;

/// One layer in one pass; m tokens.
struct LayerPass {
  std::vector<float> hidden;  ///< [m, width] after the layer; empty where the graph does not name it (l_out)
  /// [m] |a - a*| / |x|: a, what the layer adds to the residual stream x with the replacement, that is W_O z,
  /// normalised where the model does so; a*, the same of the exact attention output at this state. Empty where nothing
  /// was computed.
  std::vector<double> residual;
};

/// The callbacks of a llama context, with capture. For each prompt capture().start_prompt(); for each batch
/// capture().begin_batch(), decoding, capture().end_batch(). Around a batch of scored tokens instead begin(), decoding,
/// end().
class Injector {
 public:
  Injector(CaptureOptions options, int num_layers);

  Capture& capture() { return capture_; }
  /// Nothing is captured from now on, until the next begin() or true.
  void set_active(bool active) { active_ = active; }

  /// `replace` is called for each recorded layer in ascending order; null: nothing is replaced. `whole` as in
  /// Capture::begin_batch().
  void begin(std::int64_t offset, int count, Replace replace, bool whole = true);
  /// The layers of the model. Rethrows errors of the callbacks and of `replace`; throws as Capture::end_batch().
  std::vector<LayerPass> end();

  /// Whether a callback threw in this pass.
  bool failed() const { return error_.kept(); }

  static bool on_node(ggml_tensor* node, bool ask, void* self);
  static bool stop(void* self);

 private:
  bool asks(const ggml_tensor* node);
  void take(ggml_tensor* node);
  void replace_outputs(ggml_tensor* node, int layer);
  std::vector<double> residual_shares(const std::vector<float>& outputs, const std::vector<float>& exact, int layer);

  Capture capture_;
  int num_layers_;
  bool active_ = true, scoring_ = false;
  int count_ = 0;
  Replace replace_;
  std::vector<LayerPass> layers_;
  FirstError error_;
};

}  // namespace kvbench::llama
