// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), section V-C: a device cache of the clusters of the last R steps has hit rates of 63 % (R = 1)
// and 74 % (R = 2). Reading: the hit rate in tokens is at least this, on average over the steps that have R steps before them. The
// text of the row also gives the hit rate in clusters and that of the best possible cache of the same size (Belady).
// docs/theory/clusterkv.recall.md.
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

Claim clusterkv_cache();

}  // namespace kvbench
