// SPDX-License-Identifier: Apache-2.0
// Recall: the share of the best tokens, by exact logit, among the entries that answer a query.
#pragma once

#include <kvbench/replay/exact/exact_pass.hpp>
#include <kvbench/replay/measure/host_entries.hpp>
#include <kvbench/replay/metrics/answered.hpp>

namespace kvbench::replay {

/// The tokens over which recall is computed: those that the method may drop. Empty: recall does not apply.
struct RecallRange {
  Index first = 0, last = 0;
};

/// The overlap of query head g at query i of `exact`, which is query `entries_i` of the run of `entries`.
Overlap overlap_of(const HostEntries& entries, ExactBlock& exact, const RecallRange& range, Index g, Index i,
                   Index entries_i, Backend& backend);

}  // namespace kvbench::replay
