// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/law_tests.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <unsupported/Eigen/SpecialFunctions>

namespace kvbench {

double bernstein_tail(double deviation, double variance, double largest) {
  if (deviation <= 0) return 1;
  const double scale = variance + largest * deviation / 3;
  return scale <= 0 ? 0 : std::min(1.0, 2 * std::exp(-deviation * deviation / (2 * scale)));
}

double bernstein_radius(double probability, double variance, double largest) {
  const double log = std::log(2 / probability), linear = largest * log / 3;
  return linear + std::sqrt(linear * linear + 2 * variance * log);
}

double mean_of_squares_test(double ratio, double cv2, double rounding) {
  if (std::abs(ratio - 1) <= rounding) return 1;
  if (cv2 <= 0) return 0;
  ratio += ratio > 1 ? -rounding : rounding;
  const double tail = ratio > 1 ? Eigen::numext::igammac(1 / cv2, ratio / cv2)
                                : 0.5 * std::erfc((1 - ratio) / std::sqrt(cv2) / std::numbers::sqrt2);
  return std::min(1.0, 2 * tail);
}

double random_sign_bound(std::span<const double> x) {
  double sum = 0, squares = 0;
  for (const double value : x) {
    if (!std::isfinite(value)) continue;
    sum += value;
    squares += value * value;
  }
  return squares > 0 ? std::exp(-sum * sum / squares / 2) : 1;
}

std::vector<std::size_t> equal_runs(std::span<const double> weights, std::size_t count) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::size_t> runs;
  double before = 0;
  for (const double weight : weights) {
    const double middle = (before + weight / 2) / total;
    runs.push_back(std::min(count - 1, static_cast<std::size_t>(middle * static_cast<double>(count))));
    before += weight;
  }
  return runs;
}

}  // namespace kvbench
