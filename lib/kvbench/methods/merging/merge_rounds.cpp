// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/merge_rounds.hpp>

#include <utility>

namespace kvbench::methods {

MergeRounds::MergeRounds(const MergeRule& rule, const MergeSchedule& schedule, MergedEntries entries, Index round,
                         Backend& backend)
    : rule_(rule),
      schedule_(schedule),
      backend_(&backend),
      start_(std::move(entries)),
      entries_(start_),
      first_(round),
      round_(round) {}

void MergeRounds::begin() {
  if (round_ == first_) return;
  entries_ = start_;
  round_ = first_;
  links_.clear();
}

void MergeRounds::find_links() {
  if (links_.empty()) links_ = merge_links(rule_, entries_.keys, *backend_);
}

const std::vector<MergeLink>& MergeRounds::first_links() {
  begin();
  find_links();
  return links_;
}

MergeRounds::LastRound MergeRounds::last_round(Index target) {
  if (entries_.size() <= target) begin();
  find_links();
  while (entries_.size() - count(target) > target) {
    const std::vector<Index> groups = merge_groups(rule_, std::exchange(links_, {}), entries_.size(), count(target));
    entries_ = merge_entries(rule_, std::move(entries_), groups, *backend_);
    ++round_;
    find_links();
  }
  const std::vector<Index> groups = merge_groups(rule_, links_, entries_.size(), count(target));
  return {entries_, merged_groups(rule_, entries_, groups, *backend_), round_ + 1};
}

}  // namespace kvbench::methods
