// SPDX-License-Identifier: Apache-2.0
// What a stage of compression spends, as the backend and the clock see it.
#pragma once

#include <algorithm>

#include <kvbench/core/stopwatch.hpp>

namespace kvbench {

/// What a stage took, and what it keeps.
struct Spent {
  double seconds = 0, flops = 0;
  Index peak_bytes = 0, held_bytes = 0;  ///< beyond what was held before it; it may hold less than that
};

/// Runs `stage` and says what it took. Stages may be measured inside others.
template <class F>
Spent measured(Backend& backend, F stage) {
  const Stopwatch watch(backend);
  const double flops = backend.cost().flops;
  const std::size_t held = backend.held_bytes(), peak_around = backend.start_peak();
  stage();
  const auto beyond = [&](std::size_t bytes) { return static_cast<Index>(bytes) - static_cast<Index>(held); };
  const Spent spent{watch.seconds(), backend.cost().flops - flops, beyond(backend.peak_bytes()), beyond(backend.held_bytes())};
  backend.raise_peak(peak_around);
  return spent;
}

/// Both stages, one after the other.
inline Spent operator+(const Spent& first, const Spent& second) {
  return {first.seconds + second.seconds, first.flops + second.flops,
          std::max(first.peak_bytes, first.held_bytes + second.peak_bytes), first.held_bytes + second.held_bytes};
}

/// On `part` of the `count` equal things that a stage was spent on.
inline Spent part_of(const Spent& spent, Index part, Index count) {
  const double ratio = static_cast<double>(part) / static_cast<double>(count);
  return {spent.seconds * ratio, spent.flops * static_cast<double>(part) / static_cast<double>(count),
          spent.peak_bytes * part / count, spent.held_bytes * part / count};
}

}  // namespace kvbench
