// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/merge_rounds.hpp>

#include <utility>

namespace kvbench {

void MergeRounds::find_links() {
  if (links_.empty()) links_ = merge_links(rule_, entries_.keys, *backend_);
}

MergeRounds::LastRound MergeRounds::last_round(Index target) {
  spent_ = spent_ + measured(*backend_, [&] {
             find_links();
             while (entries_.size() - count(target) > target) {
               const std::vector<Index> groups = merge_groups(rule_, std::exchange(links_, {}), entries_.size(), count(target));
               entries_ = merge_entries(rule_, std::move(entries_), groups, *backend_);
               ++round_;
               find_links();
             }
           });
  const std::vector<Index> groups = merge_groups(rule_, links_, entries_.size(), count(target));
  return {entries_, merged_groups(rule_, entries_, groups, *backend_), round_ + 1};
}

}  // namespace kvbench
