// SPDX-License-Identifier: Apache-2.0
// The tokens that a method kept, with the weights that hindsight would give them: those with the smallest error on the
// first half of the evaluated queries (--refit weights). What is measured on the last half with them, and with the
// method's own weights, tells the loss of the selection from that of the weights.
#pragma once

#include <vector>

#include <kvbench/replay/answer/head_block.hpp>

namespace kvbench::replay {

/// The first query of each query head, by its number among those of the head, that is measured and not fitted to.
inline Index first_measured(const Head& head) { return head.queries_per_head() / 2; }

/// Of one configuration on one kv head. Call observe() for every run of queries, in order.
class FittedEntries {
 public:
  explicit FittedEntries(const Head& head) : head_(&head), rows_(static_cast<std::size_t>(head.group)) {}

  /// Takes those queries of the run to which weights are fitted, and the tokens of the context that answer it. Throws
  /// methods::Unavailable where these are not the tokens of the runs before, or not tokens as they are with equal
  /// weights of numerator and denominator, and methods::Infeasible where the fit would be too large.
  void observe(const ExactBlock& exact, QueryRun run, const HostEntries& entries);

  /// The entries of a run of measured queries: tokens of the context with fitted weights, without those of weight 0,
  /// and later tokens as in `entries`. The fit is computed at the first call.
  methods::EntryTables tables(const HostEntries& entries, Backend& backend);

 private:
  struct Rows {                          ///< of a query head
    std::vector<float> shares, outputs;  // [rows, middle], [rows, dv]
    std::vector<std::int32_t> ids;       // of the context, increasing, in the trace's numbers
    std::vector<float> weights;          // the method's own
  };

  std::int32_t first() const { return static_cast<std::int32_t>(head_->map.first); }
  std::int32_t last() const { return static_cast<std::int32_t>(head_->map.first + head_->map.middle); }
  Rows tokens_of(const HostEntries& entries, Index g) const;
  void fit(Backend& backend);
  void fit_rows(Index begin, Index end, Backend& backend);

  const Head* head_;
  std::vector<Rows> rows_;  ///< by query head
  bool started_ = false, fitted_ = false, per_head_ = false;
};

}  // namespace kvbench::replay
