// SPDX-License-Identifier: Apache-2.0
// Sets of entries that answer the same queries, such as those of one method at several budgets, mostly contain the same
// tokens. A segment is a group of tokens with equal weights in every set. Attention over it is computed once for all
// sets: N_c = sum_s w_cs N_s, D_c = sum_s w'_cs D_s for set c and segments s.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <kvbench/replay/answer/configuration_run.hpp>

namespace kvbench::replay {

/// Weights of a token in one set; both 0: the token is not in the set.
struct SetWeight {
  float num = 0, den = 0;
  friend bool operator==(const SetWeight&, const SetWeight&) = default;
};

struct Segment {
  methods::EntryTable table;       ///< ids only, increasing in each row
  std::vector<SetWeight> weights;  ///< by set
};

/// The segments of these sets, whose token numbers are below `tokens`. Absent where attention over segments would not
/// save work: entries with keys or values of their own, too many different weights, or sets with few tokens in common.
std::optional<std::vector<Segment>> find_segments(std::span<const HostEntries* const> sets, Index tokens,
                                                  Backend& backend);

/// The answer of each set to a run of queries of one head, with `fixed` included. The time is divided among the sets in
/// proportion to their numbers of entries. Empty where computing them together would not save work.
std::vector<ConfigurationRun::Shared> attend_together(std::span<const HostEntries* const> sets, const BlockPart& part,
                                                      const HostState& fixed, const methods::HeadTokens& tokens,
                                                      Backend& backend);

}  // namespace kvbench::replay
