// SPDX-License-Identifier: Apache-2.0
// What the attention output of a layer adds to the residual stream, read from the graph of llama.cpp: the product with
// W_O and, in some models, a norm (Gemma) and a factor (Granite) after it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <apps/llama/cpu_graph.hpp>

namespace kvbench::llama {

/// Heads [heads, rows, dim] side by side: [rows, heads * dim], as W_O reads them.
std::vector<float> by_token(std::span<const float> by_head, std::int64_t heads, std::int64_t rows);

/// Euclidean norm, in fp64.
double norm(std::span<const float> row);

class ResidualPath {
 public:
  explicit ResidualPath(int threads);

  /// Looks at a node that is about to be computed. Nodes come in the order of the graph.
  void note(const ggml_tensor* node);

  /// The residual stream [width, tokens] that the last graph normalises for the attention of a layer; null where it has
  /// another form.
  const ggml_tensor* stream(int layer) const;
  /// Whether the way of a layer was found. The functions below are for such layers.
  bool knows(int layer) const { return layers_.contains(layer); }
  /// Whether a norm lies on it; without one the way is linear.
  bool has_norm(int layer) const { return layers_.at(layer).norm.has_value(); }

  /// What attention outputs [rows, query_heads * dv] add to the stream, without a bias: [rows, width].
  std::vector<float> added(std::span<const float> outputs, int layer) const;

  /// The way of a layer in numbers.
  struct Weights {
    std::int64_t inputs = 0, width = 0;  ///< inputs: query_heads * dv
    std::vector<float> projection;       ///< [inputs, width]: W_O transposed
    std::vector<float> norm;             ///< [width] weights of the norm; empty without one
    double eps = 0, factor = 1;          ///< of the norm; what the result is multiplied by
  };
  Weights weights(int layer) const;

 private:
  struct Norm {
    float eps = 0;
    ggml_tensor* weight = nullptr;  ///< null until its product is seen
  };
  struct Layer {
    ggml_tensor* projection = nullptr;  ///< W_O; weights outlive graphs
    std::optional<Norm> norm;
    float factor = 1;
    bool biased = false;
  };

  bool extend(Layer& layer, const ggml_tensor* node);
  std::vector<float> run(std::span<const float> inputs, const Layer& layer, bool whole) const;

  mutable CpuGraph graph_;
  std::map<int, Layer> layers_;
  std::map<int, const ggml_tensor*> streams_;
  const ggml_tensor* end_ = nullptr;  ///< of the way of `layer_`, as far as it was seen
  int layer_ = 0;
};

}  // namespace kvbench::llama
