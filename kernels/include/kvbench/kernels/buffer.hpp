// SPDX-License-Identifier: Apache-2.0
// Opaque arrays, which code above kernels/ holds instead of pointers.
#pragma once

#include <cassert>
#include <memory>
#include <type_traits>

#include <kvbench/kernels/view.hpp>

namespace kvbench {

namespace kernels {
class BufferAccess;
}

/// Dense row-major matrix that lives where its Backend computes. A handle: copies and row slices share the storage,
/// which lives as long as the last of them. Contents are reachable only through Backend::read() and the kernels.
/// A default-constructed buffer is "absent"; kernels document which arguments may be absent.
template <class T>
class Buffer {
 public:
  Buffer() = default;

  /// Reading handle of a writable buffer.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) Buffer(const Buffer<U>& other)
      : storage_(other.storage_),
        data_(other.data_),
        rows_(other.rows_),
        cols_(other.cols_),
        present_(other.present_) {}

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  bool present() const { return present_; }

  /// Whether both are the same rows of the same storage, or both absent.
  bool same_as(const Buffer& other) const {
    return present_ == other.present_ && storage_ == other.storage_ && data_ == other.data_ && rows_ == other.rows_ &&
           cols_ == other.cols_;
  }

  /// Rows [begin, begin + count) of this buffer, sharing its storage.
  Buffer slice(Index begin, Index count) const {
    assert(begin >= 0 && count >= 0 && begin + count <= rows_);
    Buffer part = *this;
    part.data_ = data_ == nullptr ? nullptr : data_ + begin * cols_;
    part.rows_ = count;
    return part;
  }

  /// The same numbers as rows of `cols`, which divides size(), sharing its storage.
  Buffer reshaped(Index cols) const {
    assert(cols > 0 && size() % cols == 0);
    Buffer other = *this;
    other.rows_ = size() / cols;
    other.cols_ = cols;
    return other;
  }

 private:
  template <class U>
  friend class Buffer;
  friend class kernels::BufferAccess;

  std::shared_ptr<const void> storage_;
  T* data_ = nullptr;
  Index rows_ = 0;
  Index cols_ = 0;
  bool present_ = false;
};

namespace kernels {

/// Converts opaque buffers to typed views; used by implementations of Backend only.
class BufferAccess {
 public:
  template <class T>
  static Buffer<T> make(std::shared_ptr<const void> storage, T* data, Index rows, Index cols) {
    Buffer<T> buffer;
    buffer.storage_ = std::move(storage);
    buffer.data_ = data;
    buffer.rows_ = rows;
    buffer.cols_ = cols;
    buffer.present_ = true;
    return buffer;
  }
  template <Space S, class T>
  static MatrixView<T, S> view(const Buffer<T>& buffer) {
    return {buffer.data_, buffer.rows_, buffer.cols_, buffer.cols_};
  }
};

}  // namespace kernels
}  // namespace kvbench
