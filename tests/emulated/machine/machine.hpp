// SPDX-License-Identifier: Apache-2.0
// Runs one kernel on the calling thread.
#pragma once

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>
#include <emulated/device.hpp>

namespace emulated {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Random numbers for the order of threads, the same in every run.
struct Random {
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<result_type>(state >> 32);
  }
  std::uint64_t state = 42;
};

struct Kernel {
  dim3 grid, block;
  bool cooperative = false;
  std::function<void()> thread;
};

/// Throws Fault on deadlocks and divergent synchronisation. One call at a time.
void run_kernel(const Kernel& kernel, Order order, Random& random);

}  // namespace emulated
