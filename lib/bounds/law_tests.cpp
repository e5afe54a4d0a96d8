// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/law_tests.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <unsupported/Eigen/SpecialFunctions>

namespace kvbench {
namespace {

constexpr double least_expected = 10;

struct ChiSquare {
  double statistic = 0, degrees = 0;
  bool impossible = false;
};

void add(const Stratum& stratum, ChiSquare& sum) {
  const double total = std::accumulate(stratum.counts.begin(), stratum.counts.end(), 0.0);
  double expected = 0, seen = 0, left = total, bins = 0, statistic = 0;
  for (std::size_t i = 0; i < stratum.law.size(); ++i) {
    if (stratum.law[i] <= 0 && stratum.counts[i] > 0) sum.impossible = true;
    expected += stratum.law[i] * total;
    seen += stratum.counts[i];
    left -= stratum.law[i] * total;
    if (i + 1 < stratum.law.size() && (expected < least_expected || left < least_expected)) continue;
    if (expected <= 0) break;
    statistic += (seen - expected) * (seen - expected) / expected;
    bins += 1;
    expected = seen = 0;
  }
  if (bins < 2) return;
  sum.statistic += statistic;
  sum.degrees += bins - 1;
}

}  // namespace

double stratified_chi_square(std::span<const Stratum> strata) {
  ChiSquare sum;
  for (const Stratum& stratum : strata) add(stratum, sum);
  if (sum.impossible) return 0;
  if (sum.degrees == 0) return 1;
  return Eigen::numext::igammac(sum.degrees / 2, sum.statistic / 2);
}

double bernstein_tail(double deviation, double variance, double largest) {
  if (deviation <= 0) return 1;
  const double scale = variance + largest * deviation / 3;
  return scale <= 0 ? 0 : std::min(1.0, 2 * std::exp(-deviation * deviation / (2 * scale)));
}

double bernstein_radius(double probability, double variance, double largest) {
  const double log = std::log(2 / probability), linear = largest * log / 3;
  return linear + std::sqrt(linear * linear + 2 * variance * log);
}

double mean_of_squares_test(double ratio, double cv2) {
  const double tail = ratio > 1 ? Eigen::numext::igammac(1 / cv2, ratio / cv2)
                                : 0.5 * std::erfc((1 - ratio) / std::sqrt(cv2) / std::numbers::sqrt2);
  return std::min(1.0, 2 * tail);
}

std::vector<std::size_t> equal_runs(std::span<const double> weights, std::size_t count) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::size_t> cells;
  double before = 0;
  for (const double weight : weights) {
    const double middle = (before + weight / 2) / total;
    cells.push_back(std::min(count - 1, static_cast<std::size_t>(middle * static_cast<double>(count))));
    before += weight;
  }
  return cells;
}

}  // namespace kvbench
