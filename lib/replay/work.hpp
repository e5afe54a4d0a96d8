// SPDX-License-Identifier: Apache-2.0
// The cost of a stage of compression, as the backend and the clock saw it.
#pragma once

#include <algorithm>

#include <kvbench/replay/stopwatch.hpp>

namespace kvbench {

/// Of a block's kept scores: bounds what a head in flight holds beside its own slabs.
inline constexpr double score_bytes = 40e6;

/// What a stage of compression took, and what it keeps.
struct Work {
  double seconds = 0, flops = 0;
  std::size_t peak_bytes = 0, held_bytes = 0;
};

/// Runs `stage` and says what it took.
template <class F>
Work measured(Backend& backend, F stage) {
  const Stopwatch watch(backend);
  const double flops = backend.cost().flops;
  const std::size_t held = backend.held_bytes();
  backend.start_peak();
  stage();
  return {watch.seconds(), backend.cost().flops - flops, backend.peak_bytes() - held, backend.held_bytes() - held};
}

/// Both stages, one after the other.
inline Work operator+(const Work& first, const Work& second) {
  return {first.seconds + second.seconds, first.flops + second.flops,
          std::max(first.peak_bytes, first.held_bytes + second.peak_bytes), first.held_bytes + second.held_bytes};
}

}  // namespace kvbench
