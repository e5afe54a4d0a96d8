// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench::test {

/// Pearson's test at level 1e-4: whether `counts` by cell may be draws from `law`, probabilities that sum to 1.
inline bool follows(const std::vector<double>& counts, const std::vector<double>& law) {
  return stratified_chi_square({{Stratum{counts, law}}}) > 1e-4;
}

}  // namespace kvbench::test
