// SPDX-License-Identifier: Apache-2.0
#include "uploader.hpp"

#include <algorithm>
#include <cstring>

#include "check.hpp"

namespace kvbench::kernels::cuda {

namespace {

constexpr std::size_t stage_bytes = std::size_t{8}
                                    << 20;  // long enough for full bus speed, short enough to start early

}  // namespace

PinnedUploader::PinnedUploader(int device) {
  KVBENCH_CUDA_CHECK(cudaSetDevice(device));
  stream_ = std::make_shared<const Stream>();
  try {
    for (Stage& stage : stages_) {
      KVBENCH_CUDA_CHECK(cudaMallocHost(&stage.data, stage_bytes));
      KVBENCH_CUDA_CHECK(cudaEventCreateWithFlags(&stage.sent, cudaEventDisableTiming));
    }
  } catch (...) {
    release();
    throw;
  }
}

PinnedUploader::~PinnedUploader() { release(); }

void PinnedUploader::release() noexcept {
  for (Stage& stage : stages_) {
    if (stage.sent != nullptr) KVBENCH_CUDA_CHECK_NOEXCEPT(cudaEventDestroy(stage.sent));
    if (stage.data != nullptr) KVBENCH_CUDA_CHECK_NOEXCEPT(cudaFreeHost(stage.data));
  }
}

std::pair<std::shared_ptr<void>, void*> PinnedUploader::upload_bytes(std::shared_ptr<void> host, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  KVBENCH_CUDA_CHECK(cudaSetDevice(stream_->device()));
  std::shared_ptr<void> storage = allocate(stream_, bytes);
  void* const address = storage.get();
  try {
    send(static_cast<char*>(address), static_cast<const char*>(host.get()), bytes);
  } catch (...) {
    KVBENCH_CUDA_CHECK_NOEXCEPT(
        cudaStreamSynchronize(stream_->get()));  // the stages must be still before anybody else fills them
    throw;
  }
  return {std::move(storage), address};
}

/// Returns when all has arrived, so that any stream may use it.
void PinnedUploader::send(char* to, const char* from, std::size_t bytes) {
  for (std::size_t done = 0, turn = 0; done < bytes; done += stage_bytes, ++turn) {
    const Stage& stage = stages_[turn % stages_.size()];
    const std::size_t part = std::min(stage_bytes, bytes - done);
    if (turn >= stages_.size()) KVBENCH_CUDA_CHECK(cudaEventSynchronize(stage.sent));
    std::memcpy(stage.data, from + done, part);
    KVBENCH_CUDA_CHECK(cudaMemcpyAsync(to + done, stage.data, part, cudaMemcpyHostToDevice, stream_->get()));
    KVBENCH_CUDA_CHECK(cudaEventRecord(stage.sent, stream_->get()));
  }
  KVBENCH_CUDA_CHECK(cudaStreamSynchronize(stream_->get()));
}

}  // namespace kvbench::kernels::cuda
