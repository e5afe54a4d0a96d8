// SPDX-License-Identifier: Apache-2.0
// Turning entries into answers: the one place where what a method returned is checked and attended to.
#pragma once

#include <optional>
#include <span>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// All tokens of one kv head that entries can refer to.
struct HeadTokens {
  Buffer<const float> keys;    ///< [n, d]
  Buffer<const float> values;  ///< [n, dv]
  float scale = 1;
  Index group = 1;  ///< G
};

/// Running state of R = G*m query rows: numerator = num * exp(max), denominator = den * exp(max). The answer is num / den.
struct AttentionState {
  Buffer<float> max;  ///< [R, 1]
  Buffer<float> den;  ///< [R, 1]
  Buffer<float> num;  ///< [R, dv]
};
AttentionState empty_state(Backend& backend, Index rows, Index dv);

/// Throws std::logic_error, naming the fault, where tables break the contract: wrong number of rows, shapes that do not match,
/// ids outside [-1, limit), an id twice for the same query and sum (entries with wN = 0 and entries with wD = 0 belong to
/// different sets), weights that are NaN or infinite, own keys or values that are.
void check_entries(Backend& backend, const HeadTokens& tokens, Index num_queries, Index limit,
                   std::span<const EntryTable> tables);

/// The ids in use of a table's row [width] if they increase and unused slots come last; empty where they do not.
std::optional<std::span<const std::int32_t>> increasing_ids(std::span<const std::int32_t> row);

/// The operation that adds a table's entries to a state, which is not set yet.
kernels::WeightedAttention<Buffer> attention_over(const EntryTable& table, const HeadTokens& tokens, const QueryBlock& queries);

/// Adds the entries to `state`. With `logits`, one [R, width] buffer a table is stored there.
void attend(Backend& backend, const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables,
            AttentionState& state, std::vector<Buffer<float>>* logits = nullptr);

/// What the kernels of attend() declare: the same whether or not it was called.
double attend_flops(const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables);

}  // namespace kvbench
