// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace kvbench::test {

/// Pearson's statistic of counts against probabilities that sum to 1, where every cell with probability 0 must be empty.
/// Returns statistic / critical value at level 1e-4 (Wilson and Hilferty's approximation): below 1 = the law fits.
inline double chi_square_ratio(const std::vector<double>& counts, const std::vector<double>& law) {
  double total = 0, statistic = 0, cells = 0;
  for (const double count : counts) total += count;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (law[i] == 0) {
      if (counts[i] > 0) return INFINITY;
      continue;
    }
    const double expected = law[i] * total;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    cells += 1;
  }
  const double freedom = cells - 1, spread = 2 / (9 * freedom);
  return statistic / (freedom * std::pow(1 - spread + 3.719 * std::sqrt(spread), 3));
}

}  // namespace kvbench::test
