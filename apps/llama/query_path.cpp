// SPDX-License-Identifier: Apache-2.0
#include "query_path.hpp"

#include <cstring>
#include <new>

#include <ggml-alloc.h>
#include <ggml-backend.h>

#include <kvbench/core/error.hpp>

#include "graph.hpp"

namespace kvbench::llama {
namespace {

constexpr std::size_t most_nodes = 64;

/// Rebuilds the operations for another number of tokens in a separate ggml context. Weights are not copied.
class Rebuilder {
 public:
  Rebuilder(ggml_context* context, const ggml_tensor* input, std::int64_t tokens, int layer, std::int64_t count)
      : context_(context),
        input_(input),
        tokens_(tokens),
        count_(count),
        layer_(layer),
        rows(ggml_new_tensor_2d(context, GGML_TYPE_F32, input->ne[0], count)),
        positions(ggml_new_tensor_1d(context, GGML_TYPE_I32, count)) {}

  ggml_tensor* build(const ggml_tensor* node) {
    switch (node->op) {
      case GGML_OP_ROPE:
        return rope(node);
      case GGML_OP_MUL_MAT:
        if (node->src[1] != input_) refuse("its query projection does not read the normalised attention input (attn_norm)");
        return ggml_mul_mat(context_, weight(node->src[0]), rows);
      case GGML_OP_ADD:
        return ggml_add(context_, build(node->src[0]), weight(node->src[1]));
      case GGML_OP_MUL:
        return ggml_mul(context_, build(node->src[0]), weight(node->src[1]));
      case GGML_OP_RMS_NORM:
        return ggml_rms_norm(context_, build(node->src[0]), float_parameter(node, 0));
      case GGML_OP_NORM:
        return ggml_norm(context_, build(node->src[0]), float_parameter(node, 0));
      case GGML_OP_SCALE:
        return ggml_scale_bias(context_, build(node->src[0]), float_parameter(node, 0), float_parameter(node, 1));
      case GGML_OP_CLAMP:
        return ggml_clamp(context_, build(node->src[0]), float_parameter(node, 0), float_parameter(node, 1));
      case GGML_OP_CONT:
        return ggml_cont(context_, build(node->src[0]));
      case GGML_OP_RESHAPE:
        return reshape(node);
      case GGML_OP_VIEW:
        return view(node);
      default:
        refuse(fmt::format("the operation {} is applied between its attention input and its queries", ggml_op_desc(node)));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error("layer {}: its queries cannot be speculated: {}. Omit --speculated, or exclude the layer with --layers.",
                layer_, reason);
  }

  ggml_tensor* weight(ggml_tensor* node) const {
    if (node->op != GGML_OP_NONE || (node->flags & GGML_TENSOR_FLAG_INPUT) != 0) {
      refuse(fmt::format("'{}' affects its queries and is not a weight", node->name));
    }
    return node;
  }

  ggml_tensor* rope(const ggml_tensor* node) {
    const std::int32_t* p = node->op_params;
    if ((p[2] & GGML_ROPE_TYPE_MROPE) != 0) refuse("it rotates by several positions per token (M-RoPE)");
    ggml_tensor* factors = node->src[2] == nullptr ? nullptr : weight(node->src[2]);
    return ggml_rope_ext(context_, build(node->src[0]), positions, factors, p[1], p[2], p[4], float_parameter(node, 5),
                         float_parameter(node, 6), float_parameter(node, 7), float_parameter(node, 8), float_parameter(node, 9),
                         float_parameter(node, 10));
  }

  /// In every node here the last dimension is tokens; where heads are a separate dimension, it is the one before.
  bool by_heads(const ggml_tensor* node) const { return node->ne[2] == tokens_; }

  ggml_tensor* reshape(const ggml_tensor* node) {
    ggml_tensor* from = build(node->src[0]);
    return by_heads(node) ? ggml_reshape_3d(context_, from, node->ne[0], node->ne[1], count_)
                          : ggml_reshape_2d(context_, from, node->ne[0], count_);
  }

  /// A part of a fused projection: the same bytes of the row of each token.
  ggml_tensor* view(const ggml_tensor* node) {
    ggml_tensor* from = build(node->src[0]);
    std::size_t offset;
    std::memcpy(&offset, node->op_params, sizeof offset);
    const std::size_t row = from->ne[2] == count_ && from->ne[1] != count_ ? from->nb[2] : from->nb[1];
    if (offset + static_cast<std::size_t>(node->ne[0]) * sizeof(float) > row) refuse("its queries are a view across tokens");
    return by_heads(node) ? ggml_view_3d(context_, from, node->ne[0], node->ne[1], count_, node->nb[1], row, offset)
                          : ggml_view_2d(context_, from, node->ne[0], count_, row, offset);
  }

  ggml_context* context_;
  const ggml_tensor* input_;
  std::int64_t tokens_, count_;
  int layer_;

 public:
  ggml_tensor *rows, *positions;  ///< to be filled before the graph runs
};

}  // namespace

QueryPath::QueryPath(int threads) : backend_(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr)) {
  if (!backend_) throw Error("llama.cpp has no CPU back end, which speculated queries need");
  ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend_.get()));
  void* set_threads = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
  if (set_threads != nullptr) reinterpret_cast<ggml_backend_set_n_threads_t>(set_threads)(backend_.get(), threads);
}

std::vector<float> QueryPath::run(const ggml_tensor* rope, const ggml_tensor* input, std::int64_t tokens, int layer,
                                  std::span<const float> inputs, const std::vector<std::int32_t>& positions) {
  const ggml_context_ptr context(ggml_init(
      {.mem_size = most_nodes * ggml_tensor_overhead() + ggml_graph_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  if (!context) throw std::bad_alloc();
  Rebuilder rebuilder(context.get(), input, tokens, layer, std::ssize(positions));
  ggml_tensor* queries = ggml_cont(context.get(), rebuilder.build(rope));
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, queries);
  const ggml_backend_buffer_ptr memory(ggml_backend_alloc_ctx_tensors(context.get(), backend_.get()));
  if (!memory) throw std::bad_alloc();
  ggml_backend_tensor_set(rebuilder.rows, inputs.data(), 0, inputs.size_bytes());
  ggml_backend_tensor_set(rebuilder.positions, positions.data(), 0, positions.size() * sizeof(std::int32_t));
  if (ggml_backend_graph_compute(backend_.get(), graph) != GGML_STATUS_SUCCESS) {
    throw Error("layer {}: llama.cpp failed to compute speculated queries", layer);
  }
  std::vector<float> out(static_cast<std::size_t>(ggml_nelements(queries)));
  ggml_backend_tensor_get(queries, out.data(), 0, out.size() * sizeof(float));
  return out;
}

}  // namespace kvbench::llama
