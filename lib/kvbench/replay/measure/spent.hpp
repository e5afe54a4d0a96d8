// SPDX-License-Identifier: Apache-2.0
// The cost of a stage of compression: time, operations and memory.
#pragma once

#include <algorithm>

#include <kvbench/core/stopwatch.hpp>

namespace kvbench::replay {

struct Spent {
  double seconds = 0, flops = 0;
  Index peak_bytes = 0, held_bytes = 0;  ///< relative to the memory before the stage; held_bytes may be negative
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

/// The cost of two stages in sequence.
inline Spent operator+(const Spent& first, const Spent& second) {
  return {first.seconds + second.seconds, first.flops + second.flops,
          std::max(first.peak_bytes, first.held_bytes + second.peak_bytes), first.held_bytes + second.held_bytes};
}

}  // namespace kvbench::replay
