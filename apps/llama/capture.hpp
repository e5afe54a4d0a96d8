// SPDX-License-Identifier: Apache-2.0
// Captures queries, keys, values and attention outputs from the graph of llama.cpp while it runs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ggml.h>

#include <kvbench/core/first_error.hpp>

#include <apps/llama/graph.hpp>
#include <apps/llama/layer_capture.hpp>
#include <apps/llama/node_name.hpp>
#include <apps/llama/query_path.hpp>
#include <apps/llama/residual_path.hpp>

namespace kvbench::llama {

struct CaptureOptions {
  std::vector<int> layers;
  std::int64_t query_heads = 0, kv_heads = 0;
  std::string rope_scaling;  ///< metadata <arch>.rope.scaling.type of the model
  bool pre_rope = false;
  bool column_sums = false;
  bool speculated = false;
  bool residual_norm = false;
  int threads = 1;
};

/// One prompt at a time: start_prompt(); for each batch begin_batch(), llama_decode(), end_batch(); then take().
class Capture {
 public:
  explicit Capture(CaptureOptions options);

  /// column_sums_end: queries at earlier positions count in the column sums.
  void start_prompt(std::int64_t num_tokens, std::vector<std::int64_t> query_positions, std::int64_t column_sums_end);
  /// whole: the model's own attention covers all tokens before the batch; otherwise its softmax is not read, and
  /// parameters and column sums stay those of earlier batches.
  void begin_batch(std::int64_t offset, int count, bool whole = true);
  /// Rethrows errors of the callbacks. Throws Error with the layer where an array did not appear.
  void end_batch();
  /// Throws Error where the layers differ in heads or dimensions.
  void require_same_shapes() const;
  /// What was captured since start_prompt(), after require_same_shapes().
  std::vector<LayerCapture> take();
  /// Puts back what layers had captured since start_prompt(), in the order of take().
  void restore(const std::vector<LayerCapture>& captured);
  /// What has been captured so far on a recorded layer; null: the layer is not recorded.
  const LayerCapture* layer(int number) const;
  /// Of all layers of the model.
  const ResidualPath& residual_path() const { return residual_path_; }

  /// The callbacks of a llama context; `self` is a Capture. They throw nothing through llama.cpp; end_batch() rethrows.
  static bool on_node(ggml_tensor* node, bool ask, void* self);
  static bool stop(void* self);

 private:
  struct Layer {
    LayerCapture data;
    MaskSummary mask;
    const ggml_tensor* query_rope = nullptr;
    std::array<std::int64_t, 9> reached = {};                        ///< number of captured tokens, by role
    const ggml_tensor *query_input = nullptr, *key_input = nullptr;  ///< the last node that may feed RoPE
  };

  Layer* layer_of(const ggml_tensor* node, Role& role);
  bool wants(const ggml_tensor* node);
  void take_node(const ggml_tensor* node);
  void take_rotated(Layer& layer, Role role, const ggml_tensor* node);
  void take_rope_input(Layer& layer, Role role, const ggml_tensor* node);
  void take_attention_input(const ggml_tensor* node, int layer);
  void take_residual_norm(LayerCapture& data) const;
  void speculate(Layer& layer, const ggml_tensor* rope);
  void store_speculated(LayerCapture& data, const std::vector<float>& queries, const HeadRows& own) const;
  void take_softmax(Layer& layer, const ggml_tensor* node);
  void add_column_sums(Layer& layer, const ggml_tensor* node);

  CaptureOptions options_;
  std::vector<Layer> layers_;
  std::vector<int> slot_of_layer_;  ///< index into layers_, -1: not recorded
  std::int64_t num_tokens_ = 0, column_sums_end_ = 0;
  std::vector<std::int64_t> query_positions_;
  std::int64_t offset_ = 0, count_ = 0;
  bool whole_ = true;
  std::vector<std::int64_t> key_rows_, query_rows_;  ///< by token of the batch; -1: not stored
  /// last mask that was read; layers share masks, so that each is read once per batch
  const ggml_tensor* mask_node_ = nullptr;
  MaskSummary mask_;
  /// Attention input of a layer in this batch: the node, and the rows of the tokens whose queries are stored.
  struct AttentionInput {
    const ggml_tensor* node = nullptr;
    std::vector<float> rows;
  };
  std::map<int, AttentionInput> inputs_;  ///< by layer: recorded layers and the layers before them
  std::vector<std::int32_t> stored_;      ///< tokens of the batch whose queries are stored
  std::optional<QueryPath> query_path_;   ///< for --speculated
  ResidualPath residual_path_;
  FirstError error_;
};

}  // namespace kvbench::llama
