// SPDX-License-Identifier: Apache-2.0
// Copies large arrays to the memory of a back end while that back end computes.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench {

/// An uploaded array. Backend::adopt() of any back end on the same device turns it into a buffer.
template <class T>
class Uploaded {
 public:
  Uploaded() = default;
  Index size() const { return size_; }
  bool present() const { return storage_ != nullptr; }

 private:
  friend class Uploader;
  friend class Backend;
  Uploaded(std::shared_ptr<void> storage, void* data, Index size)
      : storage_(std::move(storage)), data_(data), size_(size) {}

  std::shared_ptr<void> storage_;
  void* data_ = nullptr;
  Index size_ = 0;
};

/// Safe to use from several threads, also while back ends on the same device compute.
class Uploader {
 public:
  virtual ~Uploader() = default;

  /// Uploads host data, at least one element, and returns when the array is in the memory of the back end (at once and
  /// without a copy on the host). Throws std::bad_alloc where that memory is exhausted.
  template <class T>
  Uploaded<T> upload(std::vector<T> data) {
    auto owner = std::make_shared<std::vector<T>>(std::move(data));
    const auto size = static_cast<Index>(owner->size());
    void* const host = owner->data();
    auto [storage, address] = upload_bytes({std::move(owner), host}, static_cast<std::size_t>(size) * sizeof(T));
    return {std::move(storage), address, size};
  }

 protected:
  virtual std::pair<std::shared_ptr<void>, void*> upload_bytes(std::shared_ptr<void> host, std::size_t bytes) = 0;
};

}  // namespace kvbench
