// SPDX-License-Identifier: Apache-2.0
// The tokens that a method kept, with the weights that hindsight would give them: those with the smallest error on the
// first half of the evaluated queries (--refit weights). What is measured on the last half with them, and with the
// method's own weights, tells the loss of the selection from that of the weights.
// A block of queries of one kv head, shared by all configurations of a work item.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include <kvbench/replay/measure/measurements.hpp>

namespace kvbench::replay {

/// A run of consecutive queries of a block, in both token numberings (see TokenMap).
struct BlockPart {
  methods::QueryBlock global, local;
};

/// The exact pass over a block, and the state over the tokens that the harness itself keeps exactly (the tail after the
/// context, protected ends).
class HeadBlock {
 public:
  /// `fixed` = trace numbers of the tokens that the harness keeps. `head` must outlive this object.
  HeadBlock(const Head& head, Index begin, Index count, const std::vector<TokenId>& fixed, Backend& backend);

  ExactBlock exact;

  const Head& head() const { return *head_; }
  const BlockPart& part(QueryRun run, Backend& backend);  ///< computed once for all configurations
  HostState fixed(QueryRun run) const;                    ///< rows of the run over the tokens that the harness keeps
  HostState whole(QueryRun run) const;                    ///< rows of the run over all tokens: the exact pass

 private:
  std::vector<float> rows(const std::vector<float>& all, QueryRun run) const;

  const Head* head_;
  methods::QueryBlock local_;
  HostState fixed_;  ///< rows of the block
  std::map<QueryRun, BlockPart> parts_;
};

/// Calls visit(blocks) with consecutive blocks of the queries of `heads`, one HeadBlock per head, as large as the limit
/// of their scores allows. `fixed` as in HeadBlock.
template <class F>
void for_each_block(std::span<const Head> heads, const std::vector<TokenId>& fixed, Backend& backend, F visit) {
  const Index total = heads.front().queries_per_head();
  const Index step = block_queries(heads.front(), score_bytes / static_cast<double>(heads.size()));
  for (Index begin = 0; begin < total; begin += step) {
    std::vector<HeadBlock> blocks;
    for (const Head& head : heads) blocks.emplace_back(head, begin, std::min(step, total - begin), fixed, backend);
    visit(std::span(blocks));
  }
}

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
