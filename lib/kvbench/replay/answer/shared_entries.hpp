// SPDX-License-Identifier: Apache-2.0
// Several sets of entries that answer the same queries, such as those of one method at several budgets, mostly hold the same
// tokens. Tokens that have equal weights in every set form a segment; its numerator and denominator are computed once, and each
// set's answer is a weighted sum of segments:  N_c = sum_s w_cs N_s,  D_c = sum_s w'_cs D_s.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <kvbench/replay/answer/segments.hpp>

namespace kvbench {

/// AttentionState of query rows on the host.
struct HostState {
  std::vector<float> max, den, num;
};

/// What one set answers: over its entries, and over its plain entries alone (their own key and value, unit weights).
struct SetAnswer {
  HostState all, plain;
};

class SharedEntries {
 public:
  /// Empty where sharing would not save work: entries with keys or values of their own or in fp64, weights that differ from
  /// token to token, or sets that hold different tokens. Token numbers lie below `tokens`.
  static std::optional<SharedEntries> of(std::span<const HostEntries* const> sets, Index tokens);

  /// Slots in use of each set, which its share of the work goes by.
  const std::vector<double>& slots() const { return slots_; }

  /// Answers to `queries`, in the order of the sets, each on top of `fixed`, the state of R = G*m rows. Uses the entries up.
  std::vector<SetAnswer> attend(const HeadTokens& tokens, const QueryBlock& queries, const HostState& fixed,
                                Backend& backend) &&;

 private:
  /// States of the segments of a scope over its queries, one after the other.
  static std::vector<HostState> attend_to(Segments& scope, const HeadTokens& tokens, const QueryBlock& queries,
                                          Backend& backend);

  std::vector<Segments> scopes_;
  std::vector<double> slots_;
  std::vector<bool> plain_;  ///< by set: all its entries are
};

}  // namespace kvbench
