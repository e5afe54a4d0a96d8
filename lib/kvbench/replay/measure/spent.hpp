// SPDX-License-Identifier: Apache-2.0
// What a stage of compression costs, as the backend and the clock see it.
#pragma once

#include <algorithm>

#include <kvbench/core/stopwatch.hpp>

namespace kvbench {

struct Spent {
  double seconds = 0, flops = 0;
  Index peak_bytes = 0, held_bytes = 0;  ///< beyond what was held before the stage; it may hold less than that afterwards
};

/// Runs `stage` and measures it.
template <class F>
Spent measured(Backend& backend, F stage) {
  const Stopwatch watch(backend);
  const double flops = backend.cost().flops;
  const std::size_t held = backend.held_bytes();
  backend.start_peak();
  stage();
  const auto beyond = [&](std::size_t bytes) { return static_cast<Index>(bytes) - static_cast<Index>(held); };
  return {watch.seconds(), backend.cost().flops - flops, beyond(backend.peak_bytes()), beyond(backend.held_bytes())};
}

/// One stage after the other.
inline Spent operator+(const Spent& first, const Spent& second) {
  return {first.seconds + second.seconds, first.flops + second.flops,
          std::max(first.peak_bytes, first.held_bytes + second.peak_bytes), first.held_bytes + second.held_bytes};
}

}  // namespace kvbench
