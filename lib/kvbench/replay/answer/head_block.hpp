// SPDX-License-Identifier: Apache-2.0
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

}  // namespace kvbench::replay
