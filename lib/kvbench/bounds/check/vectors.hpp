// SPDX-License-Identifier: Apache-2.0
// Inner products and lengths as the references of the checks compute them: in fp64, summed in the order of the
// elements. Normal numbers for synthetic vectors.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <ranges>

#include <kvbench/kernels/philox.hpp>

namespace kvbench::bounds {

/// <x, y> of two vectors of float or double.
template <std::ranges::random_access_range X, std::ranges::random_access_range Y>
double dot(const X& x, const Y& y) {
  double sum = 0;
  for (std::size_t i = 0; i < std::ranges::size(x); ++i) sum += double{x[i]} * double{y[i]};
  return sum;
}

/// |x|^2.
template <std::ranges::random_access_range X>
double squared_norm(const X& x) {
  return dot(x, x);
}

/// |x - y|^2.
template <std::ranges::random_access_range X, std::ranges::random_access_range Y>
double squared_distance(const X& x, const Y& y) {
  double sum = 0;
  for (std::size_t i = 0; i < std::ranges::size(x); ++i) {
    const double difference = double{x[i]} - double{y[i]};
    sum += difference * difference;
  }
  return sum;
}

/// A standard normal number by Box and Muller's transform, from one block of random words.
inline double standard_normal(const PhiloxBlock& words) {
  const double radius = std::sqrt(-2 * std::log(uniform52(words.x[0], words.x[1])));
  return radius * std::cos(2 * std::numbers::pi * uniform52(words.x[2], words.x[3]));
}

}  // namespace kvbench::bounds
