// SPDX-License-Identifier: Apache-2.0
// Which rows of a replay the trace can tell from the best of their group, and which it cannot.
#pragma once

#include <span>

#include <kvbench/replay/records/record.hpp>

namespace kvbench {

/// Fills best, diff_best, diff_best_interval and tied of the rows over heads. A group is what has the same run, trace, prompt,
/// layer, budget, protocol and device; its candidates are the rows that are ok and not dense, without `exact` and `oracle-topk`
/// (is_reference()), and that answered the same queries of the same heads as the best one, the lowest mean rel_err among those
/// that answered the most. Differences are paired by block of queries, head and seed; Holm counts all pairs of candidates,
/// because the best is chosen by the data that test it. Call it when the records are complete: parts of a replay may miss the
/// best.
void mark_best(std::span<Record> records);

}  // namespace kvbench
