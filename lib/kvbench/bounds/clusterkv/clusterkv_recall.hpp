// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), section V-B and Fig. 11: the recall |I n I*| / B of the B tokens with the largest logits.
//   clusterkv.recall_order  recall of ClusterKV above that of Quest and of InfiniGen at every budget (Fig. 11a)
//   clusterkv.distance      clustering by cosine recalls more than by L2 or by inner product (Fig. 11b)
//   clusterkv.saturation    more clusters recall more, and the gain per cluster decreases beyond C0 = L / 80 (Fig. 11b)
// Means are over layers, heads and steps, as in the paper; independent units are heads and seeds. Budgets are about the same shares
// of the context as 256 to 2048 of 32k tokens in the paper. Sinks count as recalled, for all methods. docs/theory/clusterkv.*.md.
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

Claim clusterkv_recall_order();
Claim clusterkv_distance();
Claim clusterkv_saturation();

}  // namespace kvbench
