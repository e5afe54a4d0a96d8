// SPDX-License-Identifier: Apache-2.0
// Attention over the entries that a method returned.
#pragma once

#include <span>
#include <vector>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/entries.hpp>
#include <kvbench/methods/contract/inputs.hpp>

namespace kvbench::methods {

/// All tokens of one kv head that entries can refer to.
struct HeadTokens {
  Buffer<const float> keys;    ///< [n, d]
  Buffer<const float> values;  ///< [n, dv]
  float scale = 1;
  Index group = 1;              ///< G
  bool values_in_keys = false;  ///< HeadPrompt::values_in_keys

  /// HeadPrompt::value_numbers().
  Index value_numbers() const { return values_in_keys ? 0 : values.cols(); }
};

/// Running sums of R = G*m query rows: numerator = num * exp(max), denominator = den * exp(max). The answer is num /
/// den.
struct AttentionState {
  Buffer<float> max;  ///< [R, 1]
  Buffer<float> den;  ///< [R, 1]
  Buffer<float> num;  ///< [R, dv]
};
AttentionState empty_state(Backend& backend, Index rows, Index dv);

/// The same sums on the host.
struct HostState {
  std::vector<float> max, den;  ///< [R]
  std::vector<float> num;       ///< [R, dv]
};
HostState on_host(const AttentionState& state, Backend& backend);

/// Adds the entries to `state`. Where `logits` is not null, one buffer [R, width] per table is appended to it.
void attend(Backend& backend, const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables,
            AttentionState& state, std::vector<Buffer<float>>* logits = nullptr);

/// Clamps the outputs num / den of sums over these tables to the range that a table has; does nothing where none has
/// one. Where entries were seen and their denominator is not positive, the output is 0 before that, and `den` stays
/// below 0.
void clamp_outputs(std::span<const EntryTable> tables, HostState& sums, Backend& backend);

/// Softmax weights of single-step queries over their entries, by table: [G, width]. `logits`: those of attend();
/// `state`: after it.
std::vector<Buffer<const float>> observed_weights(std::span<const EntryTable> tables,
                                                  std::span<const Buffer<float>> logits, const HostState& state,
                                                  Backend& backend);

/// Floating point operations that attend() declares for these tables.
double attend_flops(const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables);

}  // namespace kvbench::methods
