// SPDX-License-Identifier: Apache-2.0
// State shared by the calls of the emulated runtime.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "../machine/machine.hpp"
#include "memory.hpp"

struct CUstream_st {
  int device = 0;
  std::deque<std::function<void()>> queue;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::shared_ptr<bool> done = std::make_shared<bool>(true);
};
struct CUmemPoolHandle_st {
  int device = 0;
};

namespace emulated {

struct Device {
  Memory memory;
  std::uint64_t digest = 0;
  Random random;
};

struct Runtime {
  std::mutex mutex;
  std::array<Device, devices> all;
  std::array<CUmemPoolHandle_st, devices> pools{{{0}, {1}, {2}}};
  std::string fault;
  cudaError_t last = cudaSuccess;
};

Runtime& runtime();

extern thread_local int current_device;

/// Records an error until cudaGetLastError(); after a fault, every call fails.
cudaError_t recorded(cudaError_t error);

cudaError_t record_fault(const Fault& fault);

/// Makes one call under the lock, and turns a Fault into its error.
template <class Call>
cudaError_t attempt(Call call) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().fault.empty()) return cudaErrorLaunchFailure;
  try {
    return recorded(call());
  } catch (const Fault& fault) {
    return record_fault(fault);
  }
}

}  // namespace emulated
