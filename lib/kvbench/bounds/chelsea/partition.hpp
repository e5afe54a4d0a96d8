// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), section 5.2 and Theorem 6.1: the theorem is about similarities that depend on the
// distance alone. The rows compare alternating sides with halves and with random sides on the cosines of the keys
// themselves, by the objective of the theorem (all pairs between A and B) and by that of the algorithm (the best edge
// of each token of A). docs/theory/chelsea.thm61.md.
#pragma once

#include <kvbench/bounds/chelsea/theorem61.hpp>

namespace kvbench::bounds {

/// Cosines of the rows [n, d] with each other, [n][n].
using Cosines = std::vector<std::vector<double>>;
Cosines cosines_of(std::span<const float> rows, Index d);

/// What a partition keeps.
struct Kept {
  double pairs = 0;  ///< mean cosine of the pairs between A and B
  double edges = 0;  ///< mean over A of the largest cosine with a token of B
};
Kept kept_by(const Cosines& cosines, std::span<const int> sides);
/// The mean of random partitions with sides of equal size; `pairs` is the expectation, `edges` the mean of `draws`
/// partitions.
Kept kept_by_random(const Cosines& cosines, std::uint32_t draws);

Check chelsea_partition();

}  // namespace kvbench::bounds
