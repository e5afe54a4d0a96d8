// SPDX-License-Identifier: Apache-2.0
// Hit rates of the device cache of ClusterKV (arXiv 2412.03213, section IV-D), which keeps the clusters of the last R
// decode steps, simulated from the clusters that a method selected. Pages count as clusters.
//
// Steps are the queries of one query head at consecutive positions; where a position is missing, a new run starts with
// an empty cache. The first R steps of a run have no full window before them and therefore no rate, but the cache holds
// the clusters that they loaded. A cluster is loaded and kept whole, so that it hits even where it was cut to a budget
// when it was loaded.
#pragma once

#include <span>
#include <vector>

#include <kvbench/replay/measure/host_entries.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

struct ClusterUse {
  std::int32_t cluster = 0;
  std::int32_t tokens = 0;  ///< number of its tokens that answer, > 0
};

/// The clusters that answered one query of one query head.
struct ClusterStep {
  std::int32_t position = 0;
  Index query = 0;                   ///< index among the head's evaluated queries
  std::vector<ClusterUse> clusters;  ///< in increasing order, each once; tokens without a cluster are omitted
};

/// The clusters of query head g at query i of these entries, over the visible tokens first <= id < last.
ClusterStep cluster_step(const HostEntries& entries, Index g, Index i, std::int32_t first, std::int32_t last);

/// For each step, in increasing order of position, the share of its tokens in clusters that one of the `window` >= 1
/// steps before it selected, in [0, 1]; NaN where it has none.
std::vector<double> cache_hits(std::span<const ClusterStep> steps, Index window);

/// Fills the metrics that are hit rates, for one query head: rows[step.query] from its steps, NaN elsewhere.
void set_cache_hits(std::span<const ClusterStep> steps, std::span<MetricRow> rows);

}  // namespace kvbench::replay
