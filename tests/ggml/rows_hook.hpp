// SPDX-License-Identifier: Apache-2.0
// Changes the queries, keys and values of llama.cpp's graph where they are computed: after RoPE, before llama.cpp
// rotates and stores them.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <ggml.h>

#include <apps/llama/node_name.hpp>

namespace kvbench::testing {

/// Rounding to a type and back, by ggml's own functions for this processor, as llama.cpp does it in a cache.
struct CacheRounding {
  ggml_type type = GGML_TYPE_Q8_0;
  bool rotated = true;  ///< by Hadamard matrices: keys and queries in the largest blocks that divide d, values in 64
};

class RowsHook {
 public:
  explicit RowsHook(int kv_heads) : kv_heads_(kv_heads) {}

  /// What happens to the next batch, of `count` tokens from `begin` on.
  struct Batch {
    std::int64_t begin = 0, count = 0;
    enum class Rows {
      unchanged,
      recorded,  ///< copied
      replaced,  ///< keys and values by those recorded at the same positions
    } rows = Rows::unchanged;
    std::optional<CacheRounding> rounding;  ///< of keys and values, after the above
    bool queries = false;                   ///< are rounded too, to the type in which ggml multiplies them by such keys
  };
  void start(const Batch& batch) { batch_ = batch; }

  /// For llama_context_params::cb_eval.
  static bool on_node(ggml_tensor* node, bool ask, void* self);

 private:
  bool wants(const ggml_tensor* node, llama::Role role) const;
  void change(ggml_tensor* node, llama::NodeName name);

  int kv_heads_;
  Batch batch_;
  std::map<std::pair<int, llama::Role>, std::vector<float>> recorded_;  ///< [tokens, heads, dim]
};

}  // namespace kvbench::testing
