// SPDX-License-Identifier: Apache-2.0
// A block of queries of one kv head, as all configurations of a work item share it.
#pragma once

#include <map>
#include <vector>

#include <kvbench/replay/measure/measurements.hpp>

namespace kvbench {

/// A run of consecutive queries of a block, in both token numberings (see TokenMap).
struct BlockPart {
  QueryBlock global, local;
};

/// The exact pass over a block, and the state over the tokens that the harness itself keeps exactly (the tail after the context,
/// protected ends).
class HeadBlock {
 public:
  /// `fixed` = trace numbers of the tokens that the harness keeps. `head` outlives this.
  HeadBlock(const Head& head, Index begin, Index count, const std::vector<TokenId>& fixed, Backend& backend);

  ExactBlock exact;

  const Head& head() const { return *head_; }
  const BlockPart& part(QueryRun run, Backend& backend);  ///< computed once for all configurations
  HostState fixed(QueryRun run) const;                    ///< of the run's rows over the tokens that the harness keeps
  HostState whole(QueryRun run) const;                    ///< over all tokens: the exact pass

 private:
  std::vector<float> rows(const std::vector<float>& all, QueryRun run) const;

  const Head* head_;
  QueryBlock local_;
  HostState fixed_;  ///< rows of the block
  std::map<QueryRun, BlockPart> parts_;
};

}  // namespace kvbench
