// SPDX-License-Identifier: Apache-2.0
// The sequence of merge rounds from some entries to a target number. In whole rounds the schedule binds; a last round
// merges what remains to be merged. Whole rounds do not depend on the target, so that for decreasing targets they
// continue from the round that was reached before.
#pragma once

#include <kvbench/methods/merging/soft_matching.hpp>

namespace kvbench::methods {

class MergeRounds {
 public:
  /// `round` is the number of the first round. The backend must outlive this object.
  MergeRounds(const MergeRule& rule, const MergeSchedule& schedule, MergedEntries entries, Index round,
              Backend& backend);

  /// The links of the first round. Throws Infeasible as merge_links() does.
  const std::vector<MergeLink>& first_links();

  struct LastRound {
    const MergedEntries& entries;  ///< before it; valid until the next call
    MergedGroups groups;           ///< the groups after it
    Index rounds;                  ///< number of the round after it
  };
  /// Runs whole rounds and returns the last round towards `target` entries, which must be fewer than the initial ones.
  /// A target above the number of entries reached starts again from the initial entries. Throws Infeasible as
  /// merge_links() does.
  LastRound last_round(Index target);

 private:
  void begin();
  void find_links();
  Index count(Index target) const { return merge_count(schedule_, entries_.size(), entries_.size() - target, round_); }

  MergeRule rule_;
  MergeSchedule schedule_;
  Backend* backend_;
  MergedEntries start_, entries_;  ///< initial entries, and entries before the next round
  Index first_, round_;
  std::vector<MergeLink> links_;  ///< of the next round; empty: not computed yet
};

}  // namespace kvbench::methods
