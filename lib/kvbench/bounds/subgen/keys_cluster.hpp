// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), section 3.1 and Fig. 1: keys are more clusterable than values, seen with the centres of greedy
// k-center, k = 16, over 1024 tokens. Reading: the radius that covers all points with 16 centres, in units of the spread of the
// points, is smaller for keys than for values. The heads of the trace are the units. docs/theory/subgen.keys_cluster.md.
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

Claim subgen_keys_cluster();

}  // namespace kvbench
