// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), section 3.1 and Fig. 1: keys are more clusterable than values, seen with the centres of
// greedy k-center, k = 16, over 1024 tokens. Reading: the radius that covers all points with 16 centres, in units of
// the spread of the points, is smaller for keys than for values (subgen.keys_cluster). "The cluster centers
// corresponding to the key embeddings are evenly distributed across the entire embedding space": the clusters of keys
// are of more even sizes than those of values, and their centres are farther apart, in units of the spread
// (subgen.dispersion). The heads of the trace are the units. docs/theory/subgen.keys_cluster.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

struct CentreDispersion {
  double evenness = 0;  ///< e to the entropy of the cluster sizes, over the number of centres; 1: equal sizes
  double distance = 0;  ///< root mean square distance of two centres over that of two points
};
/// Of greedy k-center from the first of the rows [n, d]; each point belongs to its nearest centre.
CentreDispersion centre_dispersion(std::span<const float> rows, Index d, Index centres);

Check subgen_keys_cluster();
Check subgen_dispersion();

}  // namespace kvbench::bounds
