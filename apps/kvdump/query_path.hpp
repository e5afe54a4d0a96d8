// SPDX-License-Identifier: Apache-2.0
// The operations that lead from the normed input of a layer's attention to its rotated queries, read from llama.cpp's graph and
// run again on other inputs: the model's own weights, in its own precision, with its own rotation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ggml-cpp.h>

namespace kvbench::kvdump {

class QueryPath {
 public:
  explicit QueryPath(int threads);

  /// Queries [inputs, heads, dim] of `inputs` (rows of the model's width) at these positions, as the layer makes them whose
  /// rotated queries are the node `rope` and the input of whose attention is the node `input`, of a batch of `tokens`. Throws
  /// Error naming the layer where its graph does more than project, add a bias, normalise, scale and rotate.
  std::vector<float> run(const ggml_tensor* rope, const ggml_tensor* input, std::int64_t tokens, int layer,
                         std::span<const float> inputs, const std::vector<std::int32_t>& positions);

 private:
  ggml_backend_ptr backend_;
};

}  // namespace kvbench::kvdump
