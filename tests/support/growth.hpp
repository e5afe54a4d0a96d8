// SPDX-License-Identifier: Apache-2.0
// How processor time grows with the size of the input.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace kvbench::testing {

/// The least processor time of three calls, in seconds.
template <class F>
double least_seconds(F work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    work();
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

/// Whether work(8 * n) takes less than 24 times as long as work(n): 8 times where the time is linear in n, 64 times
/// where it is quadratic. n is `size`, doubled until work(n) takes long enough to be measured.
template <class F>
bool grows_linearly(F work, int size) {
  constexpr double measurable = 0.02;
  double small = least_seconds([&] { work(size); });
  while (small < measurable) {
    size *= 2;
    small = least_seconds([&] { work(size); });
  }
  const std::clock_t start = std::clock();
  work(8 * size);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 24 * small;
}

}  // namespace kvbench::testing
