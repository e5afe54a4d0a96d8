// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/query_path.hpp>

#include <cstring>

#include <ggml-backend.h>

#include <kvbench/core/error.hpp>

#include <apps/llama/graph.hpp>

namespace kvbench::llama {
namespace {

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
        if (node->src[1] != input_)
          refuse("its query projection does not read the normalised attention input (attn_norm)");
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
        refuse(
            fmt::format("the operation {} is applied between its attention input and its queries", ggml_op_desc(node)));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error(
        "layer {}: its queries cannot be speculated: {}. Omit --speculated, or exclude the layer with --layers.",
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
                         float_parameter(node, 6), float_parameter(node, 7), float_parameter(node, 8),
                         float_parameter(node, 9), float_parameter(node, 10));
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
    if (offset + static_cast<std::size_t>(node->ne[0]) * sizeof(float) > row)
      refuse("its queries are a view across tokens");
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

QueryPath::QueryPath(int threads) : graph_(threads) {}

std::vector<float> QueryPath::run(const ggml_tensor* rope, const ggml_tensor* input, std::int64_t tokens, int layer,
                                  std::span<const float> inputs, const std::vector<std::int32_t>& positions) {
  const ggml_context_ptr context = CpuGraph::nodes();
  Rebuilder rebuilder(context.get(), input, tokens, layer, std::ssize(positions));
  ggml_tensor* queries = ggml_cont(context.get(), rebuilder.build(rope));
  return graph_.run(
      context.get(), queries,
      {{rebuilder.rows, std::as_bytes(inputs)}, {rebuilder.positions, std::as_bytes(std::span(positions))}});
}

}  // namespace kvbench::llama
