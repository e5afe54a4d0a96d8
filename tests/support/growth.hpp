// SPDX-License-Identifier: Apache-2.0
// How processor time grows with the size of the input.
#pragma once

#include <algorithm>
#include <ctime>

namespace kvbench::testing {

/// Processor time of a call, in seconds.
template <class F>
double seconds(F work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}
/// The least of three calls: beside other work a call may take three times as long.
template <class F>
double least_seconds(F work) {
  return std::min({seconds(work), seconds(work), seconds(work)});
}

/// Whether work(8 * n) takes less than 32 times as long as work(n): 8 times where the time is linear in n, twice that
/// where larger data leave the caches of the processor, 64 times where it is quadratic. n is `size`, doubled until
/// work(n) takes long enough to be measured.
template <class F>
bool grows_linearly(F work, int size) {
  constexpr double measurable = 0.02;
  double small = least_seconds([&] { work(size); });
  while (small < measurable) {
    size *= 2;
    small = least_seconds([&] { work(size); });
  }
  return seconds([&] { work(8 * size); }) < 32 * small || least_seconds([&] { work(8 * size); }) < 32 * small;
}

}  // namespace kvbench::testing
