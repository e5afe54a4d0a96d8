// SPDX-License-Identifier: Apache-2.0
// What a method is given: the context of a kv head, queries to answer, decoded tokens. An absent buffer means that the
// trace does not hold the array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kvbench/core/ids.hpp>
#include <kvbench/kernels/buffer.hpp>

namespace kvbench::methods {

/// Rotary embedding (RoPE) of the trace, without scaling.
struct Rope {
  double theta = 10000;
  bool interleaved = false;
};

/// The data of a context that a trace may lack.
struct ContextData {
  Index tokens = 0;                    ///< n
  std::vector<std::int32_t> observed;  ///< positions of the observed queries (HeadPrompt::observed_positions)
  bool column_sums = false;
};

/// The input of a method for one kv head: its context of n tokens. No evaluated query is among the observed queries.
struct HeadPrompt {
  PromptId prompt;
  std::string prompt_group;  ///< name of the prompt in the trace
  LayerId layer;
  KvHeadId head;
  Index num_layers = 1;          ///< of the model
  Index num_caches = 1;          ///< layers of the model that have a cache of their own
  Index depth = 0;               ///< index of this layer among them
  Index num_kv_heads = 1;        ///< of the layer
  Index group = 1;               ///< G, query heads that share this kv head
  Index window = 0;              ///< sliding window of the layer, 0 = none; a cache holds so many tokens at most
  float scale = 1;               ///< logits are scale * <q, k>
  Buffer<const float> keys;      ///< [n, d] after RoPE
  Buffer<const float> values;    ///< [n, dv]
  bool values_in_keys = false;   ///< MLA: values are the first dv channels of the keys, and take no memory of their own
  Buffer<const float> observed;  ///< [G*n_obs, d] queries inside the context, row g*n_obs + i
  /// [n_obs] increasing; a position >= n is that of a token that the harness keeps outside this context and that
  /// attends to all of it
  std::vector<std::int32_t> observed_positions;
  /// [G*n_obs, 1] ln of the sum of exp(logit) over the tokens that an observed query sees and that the harness keeps
  /// outside this context (protected tokens); -inf where it sees none. Absent where the harness keeps none.
  Buffer<const float> fixed_log_sum_exp;
  std::optional<Rope> rope;           ///< absent where the model's RoPE is scaled or missing
  Buffer<const float> column_sums;    ///< [G, n] attention mass from all queries of the context
  Buffer<const float> keys_pre_rope;  ///< [n, d]
  /// [G*dv, s] the rows of W_O of each query head times a Gaussian matrix: |v S_g| estimates |W_O v| (docs/damage.md)
  Buffer<const float> output_sketch;
  /// [n', d] the first n' keys of the stream, where the context is empty (protocol `stream`). Only scalars that a user
  /// would tune beforehand (SubGen's radius) may depend on them.
  Buffer<const float> calibration_keys;
  /// The same head on a whole other text, from which a deployment would calibrate beforehand. Absent: none was named,
  /// and the method calibrates on this context.
  std::shared_ptr<const HeadPrompt> calibration;

  Index tokens() const { return keys.rows(); }
  /// Numbers that the value of a token takes beside its key.
  Index value_numbers() const { return values_in_keys ? 0 : values.cols(); }
  ContextData data() const {
    return {tokens(), observed.present() ? observed_positions : std::vector<std::int32_t>(), column_sums.present()};
  }
};

/// Queries to be answered: m positions of each of the G query heads, row g*m + i.
struct QueryBlock {
  Buffer<const float> queries;          ///< [G*m, d]
  std::vector<std::int32_t> positions;  ///< [m] increasing
  Buffer<const std::int32_t> first;     ///< [m, 1] query i sees tokens first[i] <= j < last[i]
  Buffer<const std::int32_t> last;      ///< [m, 1]
  Buffer<const float> scores;           ///< [G*m, tokens so far] exact logits, for oracles
  Buffer<const float> speculated;       ///< [G*m, d] speculated queries (InfiniGen)
  Buffer<const float> outputs;          ///< [G*m, dv] exact outputs over all visible tokens, for oracles
  Buffer<const float> log_sum_exp;      ///< [G*m, 1] ln of the exact partition function over them, for oracles

  Index size() const { return static_cast<Index>(positions.size()); }
};

/// Consecutive tokens that were decoded after the context.
struct TokenBlock {
  Index first = 0;             ///< position of the first of them
  Buffer<const float> keys;    ///< [count, d]
  Buffer<const float> values;  ///< [count, dv]

  Index size() const { return keys.rows(); }
  /// The first `count` of them.
  TokenBlock front(Index count) const { return {first, keys.slice(0, count), values.slice(0, count)}; }
};

}  // namespace kvbench::methods
