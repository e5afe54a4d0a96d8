// SPDX-License-Identifier: Apache-2.0
// Typed views of memory that they do not own. They exist only inside kernels/. The type of a view names the memory that
// it points to, so that host code cannot dereference device memory.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#define KVBENCH_HOST_DEVICE __host__ __device__
#else
#define KVBENCH_HOST_DEVICE
#endif

namespace kvbench {

using Index = std::int64_t;

namespace kernels {

enum class Space { host, device };

/// Row-major matrix: element (r, c) lies at data[r * stride + c]. Trivially copyable; rows may be padded (stride >=
/// cols). A vector of n elements is a matrix of n rows and one column (stride 1).
template <class T, Space S>
struct MatrixView {
  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;

  MatrixView() = default;
  KVBENCH_HOST_DEVICE MatrixView(T* data_, Index rows_, Index cols_, Index stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}

  /// A view of mutable elements reads as a view of constant ones; host and device never convert.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) KVBENCH_HOST_DEVICE MatrixView(MatrixView<U, S> other)
      : data(other.data), rows(other.rows), cols(other.cols), stride(other.stride) {}

  KVBENCH_HOST_DEVICE T* row(Index r) const { return data + r * stride; }
  KVBENCH_HOST_DEVICE T& operator()(Index r, Index c) const { return data[r * stride + c]; }
  KVBENCH_HOST_DEVICE T& operator[](Index r) const { return data[r * stride]; }
  KVBENCH_HOST_DEVICE bool empty() const { return data == nullptr; }
};

template <class T>
using HostMatrix = MatrixView<T, Space::host>;
template <class T>
using DeviceMatrix = MatrixView<T, Space::device>;

static_assert(!std::is_convertible_v<HostMatrix<float>, DeviceMatrix<float>>);
static_assert(!std::is_convertible_v<DeviceMatrix<float>, HostMatrix<float>>);
static_assert(std::is_trivially_copyable_v<HostMatrix<float>>);

}  // namespace kernels
}  // namespace kvbench
