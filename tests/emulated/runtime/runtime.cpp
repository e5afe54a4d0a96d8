// SPDX-License-Identifier: Apache-2.0
// Streams, events, launches and memory. Work stays in the queue of its stream until the host waits for the stream or
// for an event in it. This is the latest moment that the interface allows, so that host code that reads or frees too
// early is found.
#include "runtime.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "symbols.hpp"

namespace emulated {

namespace {

/// Runs the queued work until `done` holds. Work after a fault never runs.
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

const void* running = nullptr;

void run_checked(Device& device, int number, const Kernel& kernel, const void* address) {
  try {
    running = address;
    run_kernel(kernel, static_cast<Order>(number), device.random);
    device.memory.check_canaries();
    running = nullptr;
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

/// Both sides must match the kind; device memory must be allocated on this stream's device.
void require_sides(const Memory& memory, const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
    memory.require(to, bytes, "the target of a copy");
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
    memory.require(from, bytes, "the source of a copy");
  if (kind == cudaMemcpyHostToDevice && on_a_device(from)) throw Fault("the source of a copy is not host memory");
  if (kind == cudaMemcpyDeviceToHost && on_a_device(to)) throw Fault("the target of a copy is not host memory");
}

}  // namespace

std::string running_kernel() { return running == nullptr ? "" : name_of_function(running); }

void check_memory() {
  attempt([] {
    for (Device& device : runtime().all) device.memory.check_all();
    return cudaSuccess;
  });
}

cudaError_t queue_kernel(const cudaLaunchConfig_t& config, const void* address, std::function<void()> thread) {
  Kernel kernel{config.gridDim, config.blockDim, false, std::move(thread)};
  for (unsigned a = 0; a < config.numAttrs; ++a) {
    kernel.cooperative |= config.attrs[a].id == cudaLaunchAttributeCooperative && config.attrs[a].val.cooperative != 0;
  }
  return attempt([&] {
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

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = new CUstream_st{current_device, {}}, cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return attempt([&] { return drain(*stream), cudaSuccess; });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t status = cudaStreamSynchronize(stream);
  delete stream;
  return status;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new CUevent_st, cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return attempt([&] {
    event->stream = stream;
    event->done = std::make_shared<bool>(false);
    stream->queue.push_back([done = event->done] { *done = true; });
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return attempt([&] {
    if (!*event->done) drain(*event->stream, event->done.get());
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }

cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  return attempt([&] {
    Memory& memory = device_of(stream).memory;
    *data = memory.allocate(bytes);
    if (*data == nullptr) return cudaErrorMemoryAllocation;
    stream->queue.push_back([&memory, at = *data] { memory.poison(at); });  // overwrites what was written too early
    return cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  return attempt([&] {
    Memory& memory = device_of(stream).memory;
    memory.release(data);
    stream->queue.push_back([&memory, data] { memory.drop(data); });
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return *data = ::operator new(bytes), cudaSuccess; }
cudaError_t cudaFreeHost(void* data) { return ::operator delete(data), cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return attempt([&] {
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
