// SPDX-License-Identifier: Apache-2.0
// Reads the operations from the normalised attention input of a layer to its rotated queries from the graph of
// llama.cpp, and runs them on other inputs with the weights, the precision and the rotation of the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <apps/llama/cpu_graph.hpp>

namespace kvbench::llama {

class QueryPath {
 public:
  explicit QueryPath(int threads);

  /// Computes the queries [inputs, heads, dim] of a layer for `inputs` (rows of the model width) at these positions. In
  /// the graph of a batch of `tokens`, the node `rope` has the rotated queries of the layer, and the node `input` its
  /// attention input. Throws Error with the layer where the graph does more than project, add a bias, normalise, scale
  /// and rotate.
  std::vector<float> run(const ggml_tensor* rope, const ggml_tensor* input, std::int64_t tokens, int layer,
                         std::span<const float> inputs, const std::vector<std::int32_t>& positions);

 private:
  CpuGraph graph_;
};

}  // namespace kvbench::llama
