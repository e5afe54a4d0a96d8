// SPDX-License-Identifier: Apache-2.0
// The power of a binomial test of "the failure probability is at most `allowed`".
#pragma once

#include <cstdint>

namespace kvbench::bounds {

/// The smallest failure rate of which `trials` trials give a p-value of at most `level` with a probability of 80 %. NaN
/// where no number of failures gives such a p-value.
double detectable_rate(std::int64_t trials, double allowed, double level);

/// The fewest trials that can give a p-value of at most `level`; allowed < 1.
std::int64_t trials_needed(double allowed, double level);

}  // namespace kvbench::bounds
