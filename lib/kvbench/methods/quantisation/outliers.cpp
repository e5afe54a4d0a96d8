// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/outliers.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <kvbench/kernels/half.hpp>

namespace kvbench::methods {
namespace {

/// An order of all numbers, which selection algorithms need: NaN comes last.
bool before(float a, float b) { return a < b || (!std::isnan(a) && std::isnan(b)); }

/// The number at place `k` of the sorted ones; those after it are not smaller.
float placed(std::span<float> numbers, std::size_t k) {
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(k), numbers.end(), before);
  return numbers[k];
}

double quantile(std::span<float> numbers, double share) {
  const double place = share * static_cast<double>(numbers.size() - 1);
  const auto k = static_cast<std::size_t>(place);
  const double low = placed(numbers, k);
  if (k + 1 == numbers.size()) return low;
  const double high = *std::min_element(numbers.begin() + static_cast<std::ptrdiff_t>(k) + 1, numbers.end(), before);
  return low + (place - static_cast<double>(k)) * (high - low);
}

}  // namespace

OutlierBounds outlier_bounds(std::span<float> numbers) { return {quantile(numbers, 0.005), quantile(numbers, 0.995)}; }

float in_f16(float x) { return widen_f16(narrow_f16(x)); }

ValueRange range_of_token(std::span<float> numbers) {
  ValueRange range{.bounds = outlier_bounds(numbers)};
  float low = placed(numbers, (numbers.size() - 1) / 2), high = low;
  for (const float x : numbers) {
    if (range.outlying(x)) continue;
    low = std::min(low, x), high = std::max(high, x);
  }
  range.scale = in_f16((high - low) / 2);
  range.offset = in_f16((high + low) / 2);
  return range;
}

}  // namespace kvbench::methods
