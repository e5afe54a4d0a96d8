// SPDX-License-Identifier: Apache-2.0
// Reads what llama.cpp's graph of an attention layer says: parameters, masks, strided arrays. Everything that is not plain
// softmax attention over rotated keys is refused by name: a trace could not be replayed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ggml.h>

#include "layer_capture.hpp"

namespace kvbench::kvdump {

/// Throws Error: layer, reason (a clause without a full stop), remedy.
[[noreturn]] void refuse_layer(int layer, const std::string& reason);

/// Parameter `index` of the node's operation, where it is a float.
float float_parameter(const ggml_tensor* node, int index);

/// The fp32 data of a node as rows of heads: element (token, head, i) lies at data + token * token_stride + head * head_stride
/// + 4 i, strides in bytes (a fused qkv projection leaves gaps).
class HeadRows {
 public:
  /// A node of shape [dim, heads, tokens] (fastest first), or [heads * dim, tokens] where `heads` says how to split it. Copies
  /// data that is not in host memory. Throws Error where the node is not fp32.
  explicit HeadRows(const ggml_tensor* node);
  HeadRows(const ggml_tensor* node, std::int64_t heads);

  std::int64_t dim, heads, tokens;

  /// Token i goes to row rows[i] of each head of out [heads, row_count, dim]; -1: nowhere. Sizes `out` where it is empty.
  void scatter(const std::vector<std::int64_t>& rows, std::int64_t row_count, std::vector<float>& out) const;
  /// The `dim` numbers of one head of one token.
  const float* row(std::int64_t token, std::int64_t head) const {
    return reinterpret_cast<const float*>(data_ + token * token_stride_ + head * head_stride_);
  }

 private:
  std::int64_t token_stride_, head_stride_;
  std::vector<char> copy_;
  const char* data_;
};

struct AttentionNodes {
  LayerParameters parameters;  ///< all but the window
  const ggml_tensor* rope;     ///< the node whose output multiplies the keys
};

/// Follows a layer's softmax back to the rotated queries and collects scale, softcap and RoPE on the way. Throws Error naming
/// what stands between them where that is no scaling, and for ALiBi and attention sinks.
AttentionNodes read_attention(const ggml_tensor* softmax, int layer, const std::string& scaling_metadata);

/// Which tokens the queries of a batch see, read from the mask that the model used.
struct MaskSummary {
  std::int64_t window = 0;      ///< length of the window of the queries that do not see token 0; 0 where all do
  std::int64_t unlimited = -1;  ///< largest position that sees everything before it

  /// Adds what another batch of the same layer showed. Throws Error where the two are not one sliding window.
  void merge(const MaskSummary& other, int layer);
};

/// mask [cells, tokens]: cell j holds position j. Throws Error where a row is not the tokens max(0, p - w + 1) .. p.
MaskSummary read_mask(const ggml_tensor* mask, std::int64_t offset, std::int64_t count, int layer);

}  // namespace kvbench::kvdump
