// SPDX-License-Identifier: Apache-2.0
// Runs one kernel on the calling thread.
#pragma once

#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include "device.hpp"
#include "include/cuda_runtime.h"

namespace emulated {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Kernel {
  dim3 grid, block;
  bool cooperative = false;
  std::function<void()> thread;
};

/// Throws Fault where threads wait for each other for ever, or meet where they must not. One call at a time.
void run_kernel(const Kernel& kernel, Order order, std::mt19937& random);

}  // namespace emulated
