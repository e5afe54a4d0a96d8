// SPDX-License-Identifier: Apache-2.0
// What every kernel launch needs: the stream it is queued on, and scratch memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::kernels::cuda {

/// A stream of the device that was current at construction. Shared by the backend and by each of its allocations, so
/// that a buffer may outlive its backend.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  int device() const { return device_; }

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

/// Device memory in stream order: usable by work queued after this call, released after the work queued before its last
/// owner is destroyed. Never null, also for 0 bytes. Throws OutOfDeviceMemory.
std::shared_ptr<void> allocate(const std::shared_ptr<const Stream>& stream, std::size_t bytes);

/// Memory of allocate() is released in the order of `stream` from now on, instead of the one that it was allocated in.
/// Work queued there must have finished.
void hand_over(const std::shared_ptr<void>& storage, const std::shared_ptr<const Stream>& stream);

/// The device memory that this process can use and uses.
DeviceMemory memory_of(int device);

class Context {
 public:
  Context();

  /// Makes the stream's device current on the calling thread, which the launches of this context need.
  void activate() const;
  cudaStream_t stream() const { return stream_->get(); }
  const std::shared_ptr<const Stream>& shared_stream() const { return stream_; }
  int multiprocessors() const { return multiprocessors_; }

  /// Uninitialised scratch that belongs to the caller until the next call; grows, never shrinks.
  template <class T>
  T* workspace(std::size_t count) {
    return static_cast<T*>(workspace_bytes(count * sizeof(T)));
  }

 private:
  void* workspace_bytes(std::size_t bytes);

  std::shared_ptr<const Stream> stream_;
  std::shared_ptr<void> workspace_;
  std::size_t capacity_ = 0;
  int multiprocessors_ = 1;
};

}  // namespace kvbench::kernels::cuda
