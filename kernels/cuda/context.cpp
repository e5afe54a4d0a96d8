// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "check.hpp"

namespace kvbench::kernels::cuda {

namespace {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }

 private:
  std::shared_ptr<const std::string> message_;  // shared: copying an exception must not throw
};

[[noreturn]] void fail_out_of_memory(std::size_t bytes) {
  (void)cudaGetLastError();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  KVBENCH_CUDA_CHECK_NOEXCEPT(cudaMemGetInfo(&free_bytes, &total_bytes));
  throw OutOfMemory("GPU memory exhausted: " + std::to_string(bytes) + " bytes asked for, " + std::to_string(free_bytes) +
                    " of " + std::to_string(total_bytes) + " free. Use fewer threads, smaller query blocks, or --device cpu.");
}

/// Freed memory stays in the device's pool instead of going back to the driver at each synchronisation.
void keep_freed_memory(int device) {
  cudaMemPool_t pool = nullptr;
  KVBENCH_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  KVBENCH_CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

}  // namespace

void fail(cudaError_t status, const char* call, const char* file, int line) {
  (void)cudaGetLastError();
  const std::string_view path = file;
  const std::string name(path.substr(path.find_last_of('/') + 1));
  throw std::runtime_error(std::string("CUDA call failed: ") + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) +
                           ") in " + call + " at " + name + ":" + std::to_string(line));
}

Stream::Stream() {
  KVBENCH_CUDA_CHECK(cudaGetDevice(&device_));
  KVBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

Stream::~Stream() { KVBENCH_CUDA_CHECK_NOEXCEPT(cudaStreamDestroy(stream_)); }

std::shared_ptr<void> allocate(const std::shared_ptr<const Stream>& stream, std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMallocAsync(&data, bytes > 0 ? bytes : 1, stream->get());
  if (status == cudaErrorMemoryAllocation) fail_out_of_memory(bytes);
  KVBENCH_CUDA_CHECK(status);
  return {data, [stream](void* p) { KVBENCH_CUDA_CHECK_NOEXCEPT(cudaFreeAsync(p, stream->get())); }};
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
