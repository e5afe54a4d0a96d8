// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace kvbench::trace {

/// The rows of a slab that were written, as disjoint half-open intervals; adjacent intervals are merged.
class Coverage {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    auto next = intervals_.upper_bound(begin);
    if (next != intervals_.begin() && std::prev(next)->second >= begin) --next;
    while (next != intervals_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = intervals_.erase(next);
    }
    intervals_[begin] = end;
  }

  /// The first row of [0, rows) that is missing, or `rows`.
  std::int64_t first_gap(std::int64_t rows) const {
    const auto first = intervals_.begin();
    return first == intervals_.end() || first->first > 0 ? 0 : std::min(rows, first->second);
  }

 private:
  std::map<std::int64_t, std::int64_t> intervals_;
};

}  // namespace kvbench::trace
