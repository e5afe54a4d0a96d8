// SPDX-License-Identifier: Apache-2.0
// Values of one metric behind a row, summarised.
#pragma once

#include <map>

#include <kvbench/replay/records/record.hpp>

namespace kvbench {

/// Values with the grid of (block of queries, seed) that the bootstrap resamples.
class Values {
 public:
  explicit Values(std::size_t seeds) : seeds_(seeds) {}
  /// NaN is left out. query: index among those of the prompt; seed: index among the row's.
  void add(std::size_t prompt, Index query, std::size_t seed, double value);
  /// NaN where there is no value, and for the interval where none is asked for.
  Summary summary(bool interval) const;
  /// Sums by block alone.
  ErrorSums block_sums() const;

 private:
  std::size_t seeds_;
  std::vector<double> all_;
  std::map<std::pair<std::size_t, Index>, std::vector<std::pair<double, double>>> grid_;
};

}  // namespace kvbench
