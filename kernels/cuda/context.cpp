// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "check.hpp"

namespace kvbench::kernels::cuda {

namespace {

[[noreturn]] void fail_out_of_memory(std::size_t bytes, int device) {
  (void)cudaGetLastError();
  const DeviceMemory memory = memory_of(device);
  constexpr std::size_t mib = std::size_t{1} << 20;
  throw OutOfDeviceMemory(bytes, memory,
                          "The GPU's memory is exhausted: " + std::to_string(bytes / mib) + " MiB asked for, " +
                              std::to_string(memory.held / mib) + " MiB held, of " +
                              std::to_string(memory.limit / mib) + " MiB that this process can use.");
}

cudaMemPool_t pool_of(int device) {
  cudaMemPool_t pool = nullptr;
  KVBENCH_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

std::size_t pool_figure(int device, cudaMemPoolAttr attribute) {
  std::uint64_t value = 0;
  KVBENCH_CUDA_CHECK(cudaMemPoolGetAttribute(pool_of(device), attribute, &value));
  return value;
}

/// Freed memory stays in the device's pool instead of going back to the driver at each synchronisation.
void keep_freed_memory(int device) {
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  KVBENCH_CUDA_CHECK(cudaMemPoolSetAttribute(pool_of(device), cudaMemPoolAttrReleaseThreshold, &threshold));
}

/// Frees in the order of a stream.
struct Release {
  std::shared_ptr<const Stream> stream;
  void operator()(void* data) const { KVBENCH_CUDA_CHECK_NOEXCEPT(cudaFreeAsync(data, stream->get())); }
};

}  // namespace

void fail(cudaError_t status, const char* call, const char* file, int line) {
  (void)cudaGetLastError();
  const std::string_view path = file;
  const std::string name(path.substr(path.find_last_of('/') + 1));
  throw std::runtime_error(std::string("CUDA call failed: ") + cudaGetErrorString(status) + " (" +
                           cudaGetErrorName(status) + ") in " + call + " at " + name + ":" + std::to_string(line));
}

Stream::Stream() {
  KVBENCH_CUDA_CHECK(cudaGetDevice(&device_));
  KVBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

Stream::~Stream() { KVBENCH_CUDA_CHECK_NOEXCEPT(cudaStreamDestroy(stream_)); }

std::shared_ptr<void> allocate(const std::shared_ptr<const Stream>& stream, std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMallocAsync(&data, bytes > 0 ? bytes : 1, stream->get());
  if (status == cudaErrorMemoryAllocation) fail_out_of_memory(bytes, stream->device());
  KVBENCH_CUDA_CHECK(status);
  return {data, Release{stream}};
}

void hand_over(const std::shared_ptr<void>& storage, const std::shared_ptr<const Stream>& stream) {
  if (auto* release = std::get_deleter<Release>(storage)) release->stream = stream;
}

DeviceMemory memory_of(int device) {
  KVBENCH_CUDA_CHECK(cudaSetDevice(device));
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  KVBENCH_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  // What the pool has reserved is ours already, used or not.
  return {.limit = free_bytes + pool_figure(device, cudaMemPoolAttrReservedMemCurrent),
          .held = pool_figure(device, cudaMemPoolAttrUsedMemCurrent),
          .peak = pool_figure(device, cudaMemPoolAttrUsedMemHigh)};
}

Context::Context() : stream_(std::make_shared<const Stream>()) {
  keep_freed_memory(stream_->device());
  KVBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, stream_->device()));
}

void Context::activate() const { KVBENCH_CUDA_CHECK(cudaSetDevice(stream_->device())); }

void* Context::workspace_bytes(std::size_t bytes) {
  if (workspace_ == nullptr || bytes > capacity_) {
    workspace_.reset();
    capacity_ = 0;
    workspace_ = allocate(stream_, bytes);
    capacity_ = bytes;
  }
  return workspace_.get();
}

}  // namespace kvbench::kernels::cuda
