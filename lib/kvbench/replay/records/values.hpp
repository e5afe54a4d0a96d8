// SPDX-License-Identifier: Apache-2.0
// The values of one metric in a row, and their summary.
#pragma once

#include <map>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::replay {

/// Values with the grid of (block of queries, seed) that the bootstrap resamples.
class Values {
 public:
  explicit Values(std::size_t seeds) : seeds_(seeds) {}
  /// NaN is ignored. query: index among those of the prompt; seed: index among the row's.
  void add(std::size_t prompt, Index query, std::size_t seed, double value);
  Index size() const { return std::ssize(all_); }
  /// NaN where there is no value, and for the interval where it is not requested.
  Summary summary(bool interval) const;
  /// Sums by block only.
  ErrorSums block_sums() const;

 private:
  std::size_t seeds_;
  std::vector<double> all_;
  std::map<std::pair<std::size_t, Index>, std::vector<std::pair<double, double>>> grid_;
};

}  // namespace kvbench::replay
