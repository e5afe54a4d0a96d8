// SPDX-License-Identifier: Apache-2.0
// Errors, devices and their figures.
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime.hpp"

namespace emulated {

Runtime& runtime() {
  static auto* one = new Runtime;  // never destroyed: memory may be freed at exit
  return *one;
}

thread_local int current_device = 0;

cudaError_t recorded(cudaError_t error) {
  if (!runtime().fault.empty()) return cudaErrorLaunchFailure;
  if (error != cudaSuccess) runtime().last = error;
  return error;
}

cudaError_t record_fault(const Fault& fault) {
  runtime().fault = fault.what();
  std::fprintf(stderr, "fault of the emulated device: %s\n", fault.what());
  return cudaErrorLaunchFailure;
}

std::string fault() {
  const std::lock_guard lock(runtime().mutex);
  return runtime().fault;
}

void forget_fault() {
  const std::lock_guard lock(runtime().mutex);
  runtime().fault.clear();
}

std::uint64_t digest(int device) { return runtime().all[static_cast<std::size_t>(device)].digest; }

void limit_memory(std::size_t bytes) {
  const std::lock_guard lock(runtime().mutex);
  for (Device& device : runtime().all) device.memory.limit = bytes;
}

}  // namespace emulated

using namespace emulated;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorCooperativeLaunchTooLarge:
      return "cudaErrorCooperativeLaunchTooLarge";
    default:
      return "cudaErrorUnknown";
  }
}

/// For a failed launch, the fault.
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = error == cudaErrorLaunchFailure ? fault() : cudaGetErrorName(error);
  return text.c_str();
}

cudaError_t cudaGetLastError() {
  return attempt([] { return std::exchange(runtime().last, cudaSuccess); });
}

cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = devices, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const bool version = attribute == cudaDevAttrComputeCapabilityMajor || attribute == cudaDevAttrComputeCapabilityMinor;
  *value = attribute == cudaDevAttrMultiProcessorCount ? multiprocessors : version ? 0 : 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  constexpr const char* names[devices] = {"emulated on the processor, threads forward",
                                          "emulated on the processor, threads in reverse",
                                          "emulated on the processor, threads shuffled"};
  std::snprintf(properties->name, sizeof properties->name, "%s", names[device]);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return attempt([&] {
    const Memory& memory = runtime().all[static_cast<std::size_t>(current_device)].memory;
    *total_bytes = memory.limit;
    *free_bytes = memory.limit - std::min(memory.limit, memory.reserved());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return *pool = &runtime().pools[static_cast<std::size_t>(device)], cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return attempt([&] {
    const Memory& memory = runtime().all[static_cast<std::size_t>(pool->device)].memory;
    const std::size_t figure = attribute == cudaMemPoolAttrUsedMemCurrent ? memory.used() : memory.peak();
    std::memcpy(value, &figure, sizeof figure);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
