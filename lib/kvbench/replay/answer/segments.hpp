// SPDX-License-Identifier: Apache-2.0
// The tokens of several sets of entries, sorted by the weights that they have in each set.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <kvbench/replay/measure/selection.hpp>

namespace kvbench {

/// Weights of a token in one set; both 0: the set does not hold it.
struct SetWeight {
  float num = 0, den = 0;
  friend bool operator==(const SetWeight&, const SetWeight&) = default;
};

/// The tokens of all tables of one scope, by row and segment, increasing in each segment.
struct Segments {
  bool per_head = false, per_query = false;
  std::vector<std::vector<SetWeight>> weights;  ///< by segment, by set
  Index rows = 0, width = 0;
  std::vector<std::int32_t> ids;          ///< [rows, width], -1 in unused slots
  std::vector<std::int32_t> segment_end;  ///< [rows, segments]
  Index tokens = 0;                       ///< slots in use
};

/// Sorts the tokens that tables of this scope hold; their numbers lie below `tokens`, and no table has keys or values of its
/// own. Tables that one set holds all of, as those of budgets that nest, are segments as they stand. Empty where the weights
/// make more combinations than one pass of attention takes.
std::optional<Segments> find_segments(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query);

}  // namespace kvbench
