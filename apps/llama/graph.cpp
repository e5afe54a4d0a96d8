// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <ggml-backend.h>

#include <kvbench/core/error.hpp>

namespace kvbench::llama {
namespace {

bool moves_no_value(ggml_op op) {
  return op == GGML_OP_VIEW || op == GGML_OP_RESHAPE || op == GGML_OP_PERMUTE || op == GGML_OP_CONT ||
         op == GGML_OP_TRANSPOSE;
}

double scale_factor(const ggml_tensor* node, int layer) {
  if (float_parameter(node, 1) != 0) refuse_layer(layer, "the model adds a constant to its attention logits");
  return float_parameter(node, 0);
}

/// Parameter indices as in ggml_rope_ext in ggml.c.
void read_rope(const ggml_tensor* rope, const std::string& scaling_metadata, LayerParameters& parameters) {
  const std::int32_t dims = rope->op_params[1], mode = rope->op_params[2];
  parameters.rope_theta = float_parameter(rope, 5);
  parameters.rope_layout = mode == GGML_ROPE_TYPE_NORMAL ? "interleaved" : "half";
  const bool has_factors = rope->src[2] != nullptr;
  parameters.rope_type = dims < rope->ne[0]                              ? "partial"
                         : has_factors && scaling_metadata == "longrope" ? "longrope"
                         : has_factors                                   ? "llama3"
                         : float_parameter(rope, 7) != 0                 ? "yarn"
                         : float_parameter(rope, 6) != 1                 ? "linear"
                         : (mode & GGML_ROPE_TYPE_MROPE) != 0            ? "mrope"
                                                                         : "default";
}

}  // namespace

float float_parameter(const ggml_tensor* node, int index) {
  float value;
  std::memcpy(&value, node->op_params + index, sizeof value);
  return value;
}

void refuse_layer(int layer, const std::string& reason) {
  throw Error("layer {} of this model cannot be recorded: {}. Exclude it with --layers.", layer, reason);
}

HeadRows::HeadRows(const ggml_tensor* node)
    : dim(node->ne[0]),
      heads(node->ne[1]),
      tokens(node->ne[2]),
      token_stride_(static_cast<std::int64_t>(node->nb[2])),
      head_stride_(static_cast<std::int64_t>(node->nb[1])),
      data_(static_cast<const char*>(node->data)) {
  if (node->type != GGML_TYPE_F32 || node->nb[0] != sizeof(float)) {
    throw Error("node '{}' has the type {} instead of contiguous f32 rows", node->name, ggml_type_name(node->type));
  }
  if (node->buffer != nullptr && !ggml_backend_buffer_is_host(node->buffer)) {
    copy_.resize(ggml_nbytes(node));
    ggml_backend_tensor_get(node, copy_.data(), 0, copy_.size());
    data_ = copy_.data();
  }
}

HeadRows::HeadRows(const ggml_tensor* node, std::int64_t heads_) : HeadRows(node) {
  dim = node->ne[0] / heads_;
  heads = heads_;
  tokens = node->ne[1];
  token_stride_ = static_cast<std::int64_t>(node->nb[1]);
  head_stride_ = dim * static_cast<std::int64_t>(sizeof(float));
}

void HeadRows::scatter(const std::vector<std::int64_t>& rows, std::int64_t row_count, std::vector<float>& out) const {
  out.resize(static_cast<std::size_t>(heads * row_count * dim));
  for (std::int64_t token = 0; token < tokens; ++token) {
    if (rows[token] < 0) continue;
    for (std::int64_t head = 0; head < heads; ++head) {
      std::copy_n(row(token, head), dim, out.begin() + (head * row_count + rows[token]) * dim);
    }
  }
}

AttentionNodes read_attention(const ggml_tensor* softmax, int layer, const std::string& scaling_metadata) {
  if (float_parameter(softmax, 1) != 0) refuse_layer(layer, "it biases attention by distance (ALiBi)");
  if (softmax->src[2] != nullptr) refuse_layer(layer, "it has attention sinks, logits without a token");
  AttentionNodes found{{}, softmax->src[0]};
  double outside = float_parameter(softmax, 0),
         inside = 1;  // logits = outside * tanh(inside * <q, k>), or outside * <q, k>
  bool capped = false;
  const auto follow = [&](ggml_op end, double& factor_of_scale) {
    for (; found.rope->op != end; found.rope = found.rope->src[0]) {
      if (found.rope->op == GGML_OP_SCALE) {
        (capped ? inside : factor_of_scale) *= scale_factor(found.rope, layer);
      } else if (found.rope->op == GGML_OP_UNARY && ggml_get_unary_op(found.rope) == GGML_UNARY_OP_TANH && !capped) {
        capped = true;
      } else if (!moves_no_value(found.rope->op) || found.rope->src[0] == nullptr) {
        refuse_layer(layer, fmt::format("the operation {} is applied between the rotated queries and the softmax",
                                        ggml_op_desc(found.rope)));
      }
    }
  };
  follow(GGML_OP_MUL_MAT, outside);
  found.rope = found.rope->src[1];
  follow(GGML_OP_ROPE, outside);
  found.parameters.softcap = capped ? outside : 0;
  found.parameters.scale = capped ? outside * inside : outside;
  read_rope(found.rope, scaling_metadata, found.parameters);
  return found;
}

void MaskSummary::merge(const MaskSummary& other, int layer) {
  if (window != 0 && other.window != 0 && window != other.window) {
    refuse_layer(layer, fmt::format("its attention mask has windows of {} and {} tokens", window, other.window));
  }
  window = std::max(window, other.window);
  unlimited = std::max(unlimited, other.unlimited);
  if (window != 0 && unlimited >= window) {
    refuse_layer(layer,
                 fmt::format("its attention mask is not a sliding window: position {} attends to more than {} tokens",
                             unlimited, window));
  }
}

MaskSummary read_mask(const ggml_tensor* mask, std::int64_t offset, std::int64_t count, int layer) {
  if (mask == nullptr) refuse_layer(layer, "its attention has no causal mask");
  const HeadRows rows(mask, 1);
  MaskSummary summary;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = rows.row(i, 0);
    const std::int64_t position = offset + i;
    const std::int64_t first = std::find_if(row, row + rows.dim, [](float bias) { return bias == 0; }) - row;
    const std::int64_t end = std::find_if(row + first, row + rows.dim, [](float bias) { return bias != 0; }) - row;
    const bool rest_hidden = std::all_of(row + end, row + rows.dim, [](float bias) { return bias == -INFINITY; });
    if (end != position + 1 || !rest_hidden || !std::all_of(row, row + first, [](float b) { return b == -INFINITY; })) {
      refuse_layer(layer,
                   fmt::format("the attention mask of position {} is neither causal nor a sliding window", position));
    }
    summary.merge(first == 0 ? MaskSummary{0, position} : MaskSummary{position - first + 1, -1}, layer);
  }
  return summary;
}

}  // namespace kvbench::llama
