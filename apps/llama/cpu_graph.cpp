// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/cpu_graph.hpp>

#include <new>

#include <ggml-alloc.h>
#include <ggml-backend.h>

#include <kvbench/core/error.hpp>

namespace kvbench::llama {

CpuGraph::CpuGraph(int threads) : backend_(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr)) {
  if (!backend_) throw Error("llama.cpp has no CPU back end, which projections need");
  ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend_.get()));
  void* set_threads = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
  if (set_threads != nullptr) reinterpret_cast<ggml_backend_set_n_threads_t>(set_threads)(backend_.get(), threads);
}

ggml_context_ptr CpuGraph::nodes() {
  constexpr std::size_t most_nodes = 64;
  ggml_context_ptr context(ggml_init({.mem_size = most_nodes * ggml_tensor_overhead() + ggml_graph_overhead(),
                                      .mem_buffer = nullptr,
                                      .no_alloc = true}));
  if (!context) throw std::bad_alloc();
  return context;
}

std::vector<float> CpuGraph::run(ggml_context* context, ggml_tensor* result,
                                 std::vector<std::pair<ggml_tensor*, std::span<const std::byte>>> inputs) {
  ggml_cgraph* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, result);
  const ggml_backend_buffer_ptr memory(ggml_backend_alloc_ctx_tensors(context, backend_.get()));
  if (!memory) throw std::bad_alloc();
  for (const auto& [node, bytes] : inputs) ggml_backend_tensor_set(node, bytes.data(), 0, bytes.size());
  if (ggml_backend_graph_compute(backend_.get(), graph) != GGML_STATUS_SUCCESS) {
    throw Error("llama.cpp failed to compute {}", ggml_op_desc(result));
  }
  std::vector<float> out(static_cast<std::size_t>(ggml_nelements(result)));
  ggml_backend_tensor_get(result, out.data(), 0, out.size() * sizeof(float));
  return out;
}

}  // namespace kvbench::llama
