// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/paired_test.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include <kvbench/core/statistics.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/kernels/philox.hpp>

namespace kvbench {
namespace {

constexpr std::size_t most_enumerated = 16;
constexpr std::uint32_t flip_draws = 2;  // 0 and 1: rows and columns of the bootstrap

/// Sums of values under choices of signs, by one table look-up per eight values.
class SignedSums {
 public:
  explicit SignedSums(std::span<const double> values) : tables_((values.size() + 7) / 8) {
    for (std::size_t i = 0; i < tables_.size() * 8; ++i) {
      const double value = i < values.size() ? values[i] : 0;
      for (std::size_t signs = 0; signs < 256; ++signs) tables_[i / 8][signs] += signs >> i % 8 & 1 ? -value : value;
    }
  }
  std::size_t bytes() const { return tables_.size(); }
  /// byte(k): signs of the values 8 k to 8 k + 7, 1 = flipped.
  template <class F>
  double sum(F byte) const {
    double sum = 0;
    for (std::size_t k = 0; k < tables_.size(); ++k) sum += tables_[k][byte(k)];
    return sum;
  }

 private:
  std::vector<std::array<double, 256>> tables_;
};

/// Number of choices that reach `least`, among the half of the 2^n choices that do not flip the last sign.
double enumerate(const SignedSums& sums, std::size_t n, double least) {
  double reached = 0;
  for (std::uint32_t signs = 0; signs < 1u << (n - 1); ++signs) {
    reached += std::abs(sums.sum([&](std::size_t k) { return signs >> 8 * k & 255; })) >= least;
  }
  return reached;
}

double draw(const SignedSums& sums, int flips, double least) {
  double reached = 0;
  std::vector<std::uint32_t> words((sums.bytes() + 15) / 16 * 4);
  for (std::uint32_t flip = 0; flip < static_cast<std::uint32_t>(flips); ++flip) {
    for (std::uint32_t w = 0; w < words.size(); w += 4) {
      const PhiloxBlock block = philox4x32({{flip, w / 4, flip_draws, 0}}, {});
      std::copy_n(block.x, 4, words.begin() + w);
    }
    reached += std::abs(sums.sum([&](std::size_t k) { return words[k / 4] >> 8 * (k % 4) & 255; })) >= least;
  }
  return reached;
}

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// Variance of a mean as the sum of independent parts, and of each part squared over its degrees of freedom.
struct Variance {
  double value = 0, squares = 0;
  /// Adds a part from the residual sums of independent clusters.
  void add(std::span<const double> clusters, double total) {
    const auto count = static_cast<double>(clusters.size());
    const double sum = std::inner_product(clusters.begin(), clusters.end(), clusters.begin(), 0.0);
    const double part = sum / (total * total) * count / (count - 1);
    value += part;
    squares += part * part / (count - 1);
  }
};

/// The sums minus their numbers of observations times the overall mean.
std::vector<double> residuals(std::span<const double> sums, std::span<const double> counts) {
  const double average = sum_of(sums) / sum_of(counts);
  std::vector<double> out;
  for (std::size_t i = 0; i < sums.size(); ++i) out.push_back(sums[i] - average * counts[i]);
  return out;
}

/// Rows of the grid with at least one pair, as differences.
struct Differences {
  std::vector<double> sums, counts;
  std::vector<double> rows;  ///< over seeds
};

Differences differences(const PairedSums& pairs) {
  Differences out;
  for (std::size_t row = 0; row < pairs.counts.size(); row += pairs.seeds) {
    if (sum_of(std::span(pairs.counts).subspan(row, pairs.seeds)) == 0) continue;
    double sum = 0;
    for (std::size_t i = row; i < row + pairs.seeds; ++i) {
      out.sums.push_back(pairs.a[i] - pairs.b[i]);
      out.counts.push_back(pairs.counts[i]);
      sum += out.sums.back();
    }
    out.rows.push_back(sum);
  }
  return out;
}

/// 1000 at 95 %, which leave 25 of them in each tail.
int resamples_for(double level) { return 1000 * static_cast<int>(std::clamp(std::ceil(0.05 / (1 - level)), 1.0, 4.0)); }

}  // namespace

Interval difference_interval(const PairedSums& pairs, double level) {
  const Differences grid = differences(pairs);
  return bootstrap_mean(grid.sums, grid.counts, pairs.seeds, resamples_for(level), (1 - level) / 2);
}

Interval ratio_interval(const PairedSums& pairs, double level) {
  return bootstrap_mean(pairs.a, pairs.b, pairs.seeds, resamples_for(level), (1 - level) / 2);
}

double sign_flip_p(std::span<const double> values, int flips) {
  std::vector<double> known;  // zeros do not depend on their sign
  std::ranges::copy_if(values, std::back_inserter(known), [](double x) { return x != 0; });
  if (known.empty()) return 1;
  double size = 0;
  for (const double x : known) size += std::abs(x);
  const double least = std::abs(sum_of(known)) - 1e-12 * size;  // tolerance for sums in a different order
  const SignedSums sums(known);
  if (known.size() <= most_enumerated) return enumerate(sums, known.size(), least) / std::exp2(known.size() - 1);
  return (draw(sums, flips, least) + 1) / (flips + 1);
}

double sign_flip_least(std::size_t values, int flips) {
  return values <= most_enumerated ? std::min(1.0, 2 / std::exp2(values)) : 1.0 / (flips + 1);
}

std::size_t sign_flip_units(std::size_t family) {
  return static_cast<std::size_t>(std::ceil(std::log2(2 * static_cast<double>(family) / decided_at)));
}

double units_for_power(std::size_t units, double effect, double standard_error) {
  constexpr double both_errors = 1.96 + 0.84;  // normal quantiles of 97.5 % and 80 %
  const double needed = both_errors * standard_error / effect;
  return std::isfinite(needed) ? std::ceil(static_cast<double>(units) * needed * needed) : NAN;
}

double two_way_t_p(const PairedSums& pairs) {
  const Differences grid = differences(pairs);
  const double total = sum_of(grid.counts), average = sum_of(grid.sums) / total;
  const std::vector<double> cells = residuals(grid.sums, grid.counts);
  std::vector<double> by_block(grid.rows.size()), by_seed(pairs.seeds);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    by_block[i / pairs.seeds] += cells[i];
    by_seed[i % pairs.seeds] += cells[i];
  }
  Variance blocks, seeds;
  blocks.add(by_block, total);
  if (pairs.unit_sums.empty()) seeds.add(by_seed, total);
  for (std::size_t unit = 0; unit < pairs.unit_sums.size(); unit += pairs.seeds) {
    const auto sums = std::span(pairs.unit_sums).subspan(unit, pairs.seeds);
    const auto counts = std::span(pairs.unit_counts).subspan(unit, pairs.seeds);
    if (sum_of(counts) > 0) seeds.add(residuals(sums, counts), total);
  }
  Variance both;
  both.add(cells, total);
  const double v = std::max({blocks.value, seeds.value, blocks.value + seeds.value - both.value});
  if (v == 0) return average == 0 ? 1 : 0;
  return student_p(average / std::sqrt(v), v * v / (blocks.squares + seeds.squares));
}

PairedTest paired_test(const PairedSums& pairs, int flips, int resamples) {
  assert(pairs.a.size() == pairs.counts.size() && pairs.b.size() == pairs.counts.size());
  const Differences grid = differences(pairs);
  const double count = sum_of(pairs.counts);
  assert(count > 0);
  PairedTest test{.mean_a = sum_of(pairs.a) / count, .mean_b = sum_of(pairs.b) / count, .blocks = grid.rows.size()};
  test.difference = sum_of(grid.sums) / count;
  test.p_least = sign_flip_least(test.blocks, flips);
  test.infinite = !std::isfinite(test.mean_a) || !std::isfinite(test.mean_b);
  if (test.infinite) {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    test.difference = test.mean_a - test.mean_b;
    test.interval = {unknown, unknown};
    return test;
  }
  if (resamples > 0) test.interval = bootstrap_mean(grid.sums, grid.counts, pairs.seeds, resamples);
  test.one_seed = pairs.drawn && pairs.seeds < 2;
  test.p_value = test.one_seed ? std::numeric_limits<double>::quiet_NaN() : sign_flip_p(grid.rows, flips);
  if (pairs.seeds > 1 && test.blocks > 1) {
    test.p_value = std::max(test.p_value, two_way_t_p(pairs));
  }
  return test;
}

}  // namespace kvbench
