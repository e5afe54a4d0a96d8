// SPDX-License-Identifier: Apache-2.0
// Small graphs of our own, computed by llama.cpp's CPU back end with the weights of the model.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <ggml-cpp.h>

namespace kvbench::llama {

class CpuGraph {
 public:
  /// Throws Error where llama.cpp has no CPU back end.
  explicit CpuGraph(int threads);

  /// A context for the nodes of a graph, whose arrays are allocated by run().
  static ggml_context_ptr nodes();

  /// Allocates the nodes of the context, sets the inputs, and computes `result`, an fp32 node. Throws Error where
  /// llama.cpp fails, std::bad_alloc.
  std::vector<float> run(ggml_context* context, ggml_tensor* result,
                         std::vector<std::pair<ggml_tensor*, std::span<const std::byte>>> inputs);

 private:
  ggml_backend_ptr backend_;
};

}  // namespace kvbench::llama
