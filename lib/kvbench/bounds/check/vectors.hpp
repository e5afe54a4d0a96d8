// SPDX-License-Identifier: Apache-2.0
// Inner products and lengths as the references of the checks compute them: in fp64, summed in the order of the
// elements. Normal numbers for synthetic vectors.
#pragma once

#include <cstddef>
#include <ranges>

#include <kvbench/kernels/normal.hpp>

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

}  // namespace kvbench::bounds
