// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/values.hpp>

#include <algorithm>
#include <numeric>

#include <kvbench/core/paired_test.hpp>

namespace kvbench::replay {

void Values::add(std::size_t prompt, Index query, std::size_t seed, double value) {
  if (std::isnan(value)) return;
  all_.push_back(value);
  auto& row = grid_[{prompt, query / queries_per_block}];
  row.resize(seeds_);
  row[seed].first += value;
  row[seed].second += 1;
}

Summary Values::summary(bool interval) const {
  if (all_.empty()) return {};
  Summary s{.mean = mean(all_),
            .p1 = quantile(all_, 0.01),
            .p50 = quantile(all_, 0.5),
            .p90 = quantile(all_, 0.9),
            .p99 = quantile(all_, 0.99),
            .max = *std::ranges::max_element(all_),
            .rms = std::sqrt(std::inner_product(all_.begin(), all_.end(), all_.begin(), 0.0) /
                             static_cast<double>(all_.size()))};
  if (!interval) return s;
  const ErrorSums sums = block_sums();
  const Interval ci = bootstrap_mean(sums.blocks, sums.block_counts, seeds_);
  s.lo = ci.lo, s.hi = ci.hi;
  return s;
}

ErrorSums Values::block_sums() const {
  ErrorSums out{.seeds = seeds_};
  for (const auto& [key, row] : grid_) {
    for (const auto& [sum, count] : row) {
      out.blocks.push_back(sum);
      out.block_counts.push_back(count);
    }
  }
  return out;
}

Index ErrorSums::blocks_with_values() const {
  Index found = 0;
  for (std::size_t b = 0; b < block_counts.size(); b += seeds) {
    found += std::any_of(block_counts.begin() + static_cast<std::ptrdiff_t>(b),
                         block_counts.begin() + static_cast<std::ptrdiff_t>(b + seeds),
                         [](double count) { return count > 0; });
  }
  return found;
}

}  // namespace kvbench::replay
