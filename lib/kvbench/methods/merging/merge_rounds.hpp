// SPDX-License-Identifier: Apache-2.0
// Rounds of merging one after the other. A budget takes whole rounds, in which the schedule binds, and a last one that brings
// the entries to its size; the whole ones are the same for all budgets, and a larger one takes the first of them.
#pragma once

#include <kvbench/methods/merging/soft_matching.hpp>

namespace kvbench {

class MergeRounds {
 public:
  /// The next round of `entries` is number `round`. Their links may be known. The backend outlives this.
  MergeRounds(const MergeRule& rule, const MergeSchedule& schedule, MergedEntries entries, std::vector<MergeLink> links,
              Index round, Backend& backend)
      : rule_(rule),
        schedule_(schedule),
        backend_(&backend),
        first_(round),
        round_(round),
        entries_(std::move(entries)),
        links_(std::move(links)) {}

  struct LastRound {
    const MergedEntries& entries;  ///< before it; until the next call of last_round()
    MergedGroups groups;           ///< that it leaves
    Index rounds;                  ///< run so far, this one included
  };
  /// Whether the entries at hand are not yet past those that the last round towards `target` entries starts from.
  bool leads_to(Index target) const { return round_ == first_ || entries_.size() > target; }
  /// Runs all whole rounds on the way to `target` entries, fewer than at first, and prepares the last one, which leaves what is
  /// at hand as it is. leads_to(target). Throws Infeasible as merge_links() does.
  LastRound last_round(Index target);

  /// By calls of last_round(), on whole rounds and links.
  const Spent& spent() const { return spent_; }

 private:
  void find_links();
  Index count(Index target) const { return merge_count(schedule_, entries_.size(), entries_.size() - target, round_); }

  MergeRule rule_;
  MergeSchedule schedule_;
  Backend* backend_;
  Index first_, round_;
  MergedEntries entries_;
  std::vector<MergeLink> links_;  ///< empty: not known yet
  Spent spent_;
};

}  // namespace kvbench
