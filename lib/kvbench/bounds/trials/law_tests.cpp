// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/law_tests.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvbench::bounds {

double bernstein_tail(double deviation, double variance, double largest) {
  if (deviation <= 0) return 1;
  const double scale = variance + largest * deviation / 3;
  return scale <= 0 ? 0 : std::min(1.0, 2 * std::exp(-deviation * deviation / (2 * scale)));
}

double bernstein_radius(double probability, double variance, double largest) {
  const double log = std::log(2 / probability), linear = largest * log / 3;
  return linear + std::sqrt(linear * linear + 2 * variance * log);
}

double symmetry_test(std::span<const double> numbers, double rounding) {
  double sum = 0, squares = 0;
  for (const double x : numbers) {
    if (std::abs(x) <= rounding) continue;
    sum += x;
    squares += x * x;
  }
  return squares > 0 ? std::min(1.0, 2 * std::exp(-sum * sum / squares / 2)) : 1;
}

void EventTest::add(double weight, double p, bool hit) {
  for (std::size_t i = 0; i < log_products_.size(); ++i) {
    const double lambda = weight * (i % 2 == 0 ? 1 : -1) * std::ldexp(2.0, -static_cast<int>(i / 2));
    log_products_[i] +=
        lambda * ((hit ? 1 : 0) - p) - std::log(p * std::exp(lambda * (1 - p)) + (1 - p) * std::exp(-lambda * p));
  }
}

double EventTest::p_value() const {
  const auto count = static_cast<double>(log_products_.size());
  return std::min(1.0, count * std::exp(-std::ranges::max(log_products_)));
}

void CosineTest::add(double x) {
  for (Scale& scale : scales_) scale.sum += std::cos(scale.u * x);
  count_ += 1;
}

double CosineTest::p_value() const {
  double least = 1;
  for (const Scale& scale : scales_) {
    const double variance = std::max(0.0, (1 + scale.twice) / 2 - scale.expected * scale.expected);
    const double away = std::abs(scale.sum / count_ - scale.expected) - scale.u * rounding_ - 1e-9;
    least = std::min(least, bernstein_tail(away, variance / count_, 2 / count_));
  }
  return std::min(1.0, least * static_cast<double>(scales_.size()));
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

}  // namespace kvbench::bounds
