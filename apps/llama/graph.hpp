// SPDX-License-Identifier: Apache-2.0
// Reads the graph of an attention layer of llama.cpp: parameters, masks, strided arrays. Everything except plain
// softmax attention over rotated keys is refused with its name, because such a trace could not be replayed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ggml.h>

#include <apps/llama/layer_capture.hpp>

namespace kvbench::llama {

/// Throws Error with layer, reason (a clause without a full stop) and remedy.
[[noreturn]] void refuse_layer(int layer, const std::string& reason);

/// Parameter `index`, a float, of the operation of a node.
float float_parameter(const ggml_tensor* node, int index);

/// The fp32 data of a node as rows of heads: element (token, head, i) is at data + token * token_stride + head *
/// head_stride + 4 i, with strides in bytes (a fused qkv projection has gaps).
class HeadRows {
 public:
  /// A node of shape [dim, heads, tokens] (fastest first), or [heads * dim, tokens] that is split into `heads`. Copies
  /// data that are not in host memory. Throws Error where the node is not fp32.
  explicit HeadRows(const ggml_tensor* node);
  HeadRows(const ggml_tensor* node, std::int64_t heads);

  std::int64_t dim, heads, tokens;

  /// Copies token i to row rows[i] of each head of out [heads, row_count, dim]; -1: not copied. Resizes `out` if it is
  /// empty.
  void scatter(const std::vector<std::int64_t>& rows, std::int64_t row_count, std::vector<float>& out) const;
  /// The `dim` values of one head of one token.
  const float* row(std::int64_t token, std::int64_t head) const {
    return reinterpret_cast<const float*>(data_ + token * token_stride_ + head * head_stride_);
  }

 private:
  std::int64_t token_stride_, head_stride_;
  std::vector<char> copy_;
  const char* data_;
};

struct AttentionNodes {
  LayerParameters parameters;  ///< all except the window
  const ggml_tensor* rope;     ///< the node whose output multiplies the keys
};

/// Follows the graph from the softmax of a layer back to the rotated queries and collects scale, softcap and RoPE.
/// Throws Error with the operation for any other operation between them, and for ALiBi and attention sinks.
AttentionNodes read_attention(const ggml_tensor* softmax, int layer, const std::string& scaling_metadata);

/// The tokens to which the queries of a batch attend, from the mask of the model.
struct MaskSummary {
  std::int64_t window = 0;      ///< window length of the queries that do not attend to token 0; 0 where all do
  std::int64_t unlimited = -1;  ///< largest position that attends to all tokens before it

  /// Merges the view of another batch of the same layer. Throws Error where they do not form one sliding window.
  void merge(const MaskSummary& other, int layer);
};

/// mask [cells, tokens]: cell j of the cache is position j. Throws Error where a row is not the tokens max(0, p - w +
/// 1) .. p.
MaskSummary read_mask(const ggml_tensor* mask, std::int64_t offset, std::int64_t count, int layer);

}  // namespace kvbench::llama
