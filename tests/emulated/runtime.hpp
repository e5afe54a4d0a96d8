// SPDX-License-Identifier: Apache-2.0
// What the calls of the emulated runtime share.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "machine.hpp"
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

/// A fault stays for ever; another error until it is asked for.
cudaError_t noted(cudaError_t error);

cudaError_t failed(const Fault& fault);

/// One call: alone, and with what it throws as its error.
template <class Call>
cudaError_t guarded(Call call) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().fault.empty()) return cudaErrorLaunchFailure;
  try {
    return noted(call());
  } catch (const Fault& fault) {
    return failed(fault);
  }
}

}  // namespace emulated
