// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), section V-C: a device cache of the clusters of the last R steps has hit rates of 63 % (R = 1)
// and 74 % (R = 2). Reading: hits by tokens are at least these, on average over the steps that have a full window behind them;
// the text compares with hits by clusters and with a cache of the same size that knows the future.
// docs/theory/clusterkv.recall.md.
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

Claim clusterkv_cache();

}  // namespace kvbench
