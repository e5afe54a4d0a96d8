// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <mutex>

#include <kvbench/kernels/uploader.hpp>

#include "context.hpp"

namespace kvbench::kernels::cuda {

/// Uploads through two page-locked buffers on its own stream: one is copied while the other is filled, and neither
/// waits for the kernels of back ends.
class PinnedUploader final : public Uploader {
 public:
  explicit PinnedUploader(int device);
  ~PinnedUploader() override;

 private:
  struct Stage {
    void* data = nullptr;
    cudaEvent_t sent = nullptr;
  };

  std::pair<std::shared_ptr<void>, void*> upload_bytes(std::shared_ptr<void> host, std::size_t bytes) override;
  void send(char* to, const char* from, std::size_t bytes);
  void release() noexcept;

  std::mutex mutex_;
  std::shared_ptr<const Stream> stream_;
  std::array<Stage, 2> stages_;
};

}  // namespace kvbench::kernels::cuda
