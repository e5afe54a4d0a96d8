// SPDX-License-Identifier: Apache-2.0
// Rounds of merging, one after the other. On the way to a number of entries there are whole rounds, in which the schedule binds, and a
// last one that merges what is left to merge. Whole rounds do not depend on the target, so that falling targets continue from the round
// that the one before has reached.
#pragma once

#include <kvbench/methods/merging/soft_matching.hpp>

namespace kvbench {

class MergeRounds {
 public:
  /// The next round of `entries` is number `round`. The backend outlives this.
  MergeRounds(const MergeRule& rule, const MergeSchedule& schedule, MergedEntries entries, Index round, Backend& backend);

  /// The links of the first round. Throws Infeasible as merge_links() does.
  const std::vector<MergeLink>& first_links();

  struct LastRound {
    const MergedEntries& entries;  ///< before it; valid until the next call
    MergedGroups groups;           ///< that it leaves
    Index rounds;                  ///< number of the round after it
  };
  /// The last round towards `target` entries, fewer than at first. A target above the entries of the round reached begins anew. Throws
  /// Infeasible as merge_links() does.
  LastRound last_round(Index target);

 private:
  void begin();
  void find_links();
  Index count(Index target) const { return merge_count(schedule_, entries_.size(), entries_.size() - target, round_); }

  MergeRule rule_;
  MergeSchedule schedule_;
  Backend* backend_;
  MergedEntries start_, entries_;  ///< at first, and before the round reached
  Index first_, round_;
  std::vector<MergeLink> links_;  ///< of the round reached; empty: not computed yet
};

}  // namespace kvbench
