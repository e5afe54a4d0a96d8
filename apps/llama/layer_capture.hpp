// SPDX-License-Identifier: Apache-2.0
// Arrays and parameters of one attention layer on one prompt, in fp32 and head-major.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvbench::llama {

/// Attention parameters of a layer, from the graph of the model.
struct LayerParameters {
  double rope_theta = 0;
  std::string rope_type;    ///< default, linear, yarn, llama3, longrope, mrope, partial
  std::string rope_layout;  ///< half or interleaved
  double scale = 0;         ///< logits are scale * <q, k> ...
  double softcap = 0;       ///< ... then softcap * tanh(logit / softcap) where softcap > 0
  std::int64_t window = 0;  ///< a query at position p attends to max(0, p - window + 1) .. p; 0: to all up to p

  bool operator==(const LayerParameters&) const = default;
};

/// n tokens, m stored queries. The numbers of heads are set when the model has run.
struct LayerCapture {
  int layer = 0;
  std::int64_t num_tokens = 0;
  std::vector<std::int64_t> query_positions;  ///< [m]
  std::int64_t query_heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  LayerParameters parameters;
  std::vector<float> keys;              ///< [kv_heads, n, head_dim] post-RoPE
  std::vector<float> values;            ///< [kv_heads, n, value_dim]
  std::vector<float> queries;           ///< [query_heads, m, head_dim] post-RoPE
  std::vector<float> output;            ///< [query_heads, m, value_dim] attention output of the model
  std::vector<float> keys_pre_rope;     ///< as keys; empty unless requested
  std::vector<float> queries_pre_rope;  ///< as queries; empty unless requested
  std::vector<float> speculated;        ///< as queries, from the input of the previous layer; empty unless requested
  std::vector<double> column_sums;      ///< [query_heads, n]; empty unless requested
  /// [m] norm of the residual stream before the layer; empty unless requested, and where it was not found
  std::vector<float> residual_norm;
};

}  // namespace kvbench::llama
