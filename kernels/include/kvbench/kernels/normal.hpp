// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <numbers>

#include <kvbench/kernels/philox.hpp>

namespace kvbench {

/// Two independent numbers N(0, sigma^2) from one block of random words (Box and Muller's transform).
inline std::array<double, 2> normal_pair(const PhiloxBlock& words, double sigma = 1) {
  const double radius = sigma * std::sqrt(-2 * std::log(uniform52(words.x[0], words.x[1])));
  const double angle = 2 * std::numbers::pi * uniform52(words.x[2], words.x[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

inline double standard_normal(const PhiloxBlock& words) { return normal_pair(words)[0]; }

}  // namespace kvbench
