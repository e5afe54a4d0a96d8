// SPDX-License-Identifier: Apache-2.0
// Devices, streams and events. Work stands in the queue of its stream until the host waits for the stream or for an event in
// it: the latest moment that the interface allows, so a host that reads too early, or frees too early, is seen.
#include <array>
#include <cstdio>
#include <deque>
#include <mutex>
#include <utility>

#include "machine.hpp"
#include "memory.hpp"
#include "symbols.hpp"

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

namespace {

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

Runtime& runtime() {
  static auto* one = new Runtime;  // outlives whoever frees late
  return *one;
}

thread_local int current_device = 0;

/// A fault stays for ever; another error until it is asked for.
cudaError_t noted(cudaError_t error) {
  if (!runtime().fault.empty()) return cudaErrorLaunchFailure;
  if (error != cudaSuccess) runtime().last = error;
  return error;
}

/// One call: alone, and with what it throws as its error.
template <class Call>
cudaError_t guarded(Call call) {
  const std::lock_guard lock(runtime().mutex);
  if (!runtime().fault.empty()) return cudaErrorLaunchFailure;
  try {
    return noted(call());
  } catch (const Fault& fault) {
    runtime().fault = fault.what();
    std::fprintf(stderr, "fault of the emulated device: %s\n", fault.what());
    return cudaErrorLaunchFailure;
  }
}

/// Runs what is queued, up to where `done` holds. What is behind a fault never runs.
void drain(CUstream_st& stream, const bool* done = nullptr) try {
  while (!stream.queue.empty() && (done == nullptr || !*done)) {
    const std::function<void()> work = std::move(stream.queue.front());
    stream.queue.pop_front();
    work();
  }
} catch (...) {
  stream.queue.clear();
  throw;
}

void run_checked(Device& device, int number, const Kernel& kernel, const void* address) {
  try {
    run_kernel(kernel, static_cast<Order>(number), device.random);
    device.memory.check_canaries();
  } catch (const Fault& fault) {
    throw Fault(name_of_function(address) + ": " + fault.what());
  }
}

void mix(std::uint64_t& digest, const void* data, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(data) + at, std::min<std::size_t>(8, bytes - at));
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
    digest ^= digest >> 29;
  }
}

bool on_a_device(const void* data) {
  return std::any_of(runtime().all.begin(), runtime().all.end(), [&](const Device& d) { return d.memory.owns(data); });
}

/// Each side must be what the kind says, of this stream's device, and be held.
void require_sides(const Memory& memory, const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) memory.require(to, bytes, "the target of a copy");
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) memory.require(from, bytes, "the source of a copy");
  if (kind == cudaMemcpyHostToDevice && on_a_device(from)) throw Fault("the source of a copy is no host memory");
  if (kind == cudaMemcpyDeviceToHost && on_a_device(to)) throw Fault("the target of a copy is no host memory");
}

}  // namespace

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

void check_memory() {
  guarded([] {
    for (Device& device : runtime().all) device.memory.check_all();
    return cudaSuccess;
  });
}

cudaError_t queue_kernel(const cudaLaunchConfig_t& config, const void* address, std::function<void()> thread) {
  Kernel kernel{config.gridDim, config.blockDim, false, std::move(thread)};
  for (unsigned a = 0; a < config.numAttrs; ++a) {
    kernel.cooperative |= config.attrs[a].id == cudaLaunchAttributeCooperative && config.attrs[a].val.cooperative != 0;
  }
  return guarded([&] {
    const dim3 &grid = config.gridDim, &block = config.blockDim;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || std::uint64_t{grid.x} * grid.y * grid.z == 0 ||
        threads == 0 || threads > 1024) {
      return cudaErrorInvalidConfiguration;
    }
    if (kernel.cooperative && std::uint64_t{grid.x} * grid.y * grid.z > multiprocessors * blocks_per_multiprocessor) {
      return cudaErrorCooperativeLaunchTooLarge;
    }
    const int number = config.stream->device;
    if (number != current_device) return cudaErrorInvalidDevice;
    config.stream->queue.push_back([=, kernel = std::move(kernel)] {
      run_checked(runtime().all[static_cast<std::size_t>(number)], number, kernel, address);
    });
    return cudaSuccess;
  });
}

namespace {

Device& device_of(cudaStream_t stream) { return runtime().all[static_cast<std::size_t>(stream->device)]; }

}  // namespace
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

/// Of a failed launch: what the fault was.
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = error == cudaErrorLaunchFailure ? fault() : cudaGetErrorName(error);
  return text.c_str();
}

cudaError_t cudaGetLastError() {
  return guarded([] { return std::exchange(runtime().last, cudaSuccess); });
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

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = new CUstream_st{current_device, {}}, cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return guarded([&] { return drain(*stream), cudaSuccess; });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t status = cudaStreamSynchronize(stream);
  delete stream;
  return status;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new CUevent_st, cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return guarded([&] {
    event->stream = stream;
    event->done = std::make_shared<bool>(false);
    stream->queue.push_back([done = event->done] { *done = true; });
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return guarded([&] {
    if (!*event->done) drain(*event->stream, event->done.get());
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }

cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    Memory& memory = device_of(stream).memory;
    *data = memory.allocate(bytes);
    if (*data == nullptr) return cudaErrorMemoryAllocation;
    stream->queue.push_back([&memory, at = *data] { memory.poison(at); });  // whoever writes earlier loses it
    return cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  return guarded([&] {
    Memory& memory = device_of(stream).memory;
    memory.release(data);
    stream->queue.push_back([&memory, data] { memory.drop(data); });
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return *data = ::operator new(bytes), cudaSuccess; }
cudaError_t cudaFreeHost(void* data) { return ::operator delete(data), cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return guarded([&] {
    Device& device = device_of(stream);
    require_sides(device.memory, to, from, bytes, kind);
    stream->queue.push_back([=, &device] {
      require_sides(device.memory, to, from, bytes, kind);
      std::memcpy(to, from, bytes);
      if (kind == cudaMemcpyDeviceToHost) mix(device.digest, to, bytes);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return guarded([&] {
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
  return guarded([&] {
    const Memory& memory = runtime().all[static_cast<std::size_t>(pool->device)].memory;
    const std::size_t figure = attribute == cudaMemPoolAttrUsedMemCurrent ? memory.used() : memory.peak();
    std::memcpy(value, &figure, sizeof figure);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
