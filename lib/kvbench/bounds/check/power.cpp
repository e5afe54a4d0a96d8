// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/power.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/distributions.hpp>

namespace kvbench::bounds {

double detectable_rate(std::int64_t trials, double allowed, double level) {
  level *= 1 + 1e-12;  // a p-value that equals the level may be rounded above it: three failures at 0.1 and level 1e-3
  if (binomial_tail(trials, trials, allowed) > level) return NAN;
  constexpr double power = 0.8;
  std::int64_t least = 1, most = trials;  // failures that give the p-value
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (binomial_tail(middle, trials, allowed) <= level)
      most = middle;
    else
      least = middle + 1;
  }
  double low = 0, high = 1;
  for (int step = 0; step < 40; ++step) {
    const double rate = (low + high) / 2;
    (binomial_tail(least, trials, rate) >= power ? high : low) = rate;
  }
  return high;
}

std::int64_t trials_needed(double allowed, double level) {
  if (allowed <= 0) return 1;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(std::log(level) / std::log(allowed))));
}

}  // namespace kvbench::bounds
