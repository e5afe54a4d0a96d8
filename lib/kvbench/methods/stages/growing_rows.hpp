// SPDX-License-Identifier: Apache-2.0
// Rows of a growing number of tokens. New rows are appended to the rows of a context, or to no rows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

class GrowingRows {
 public:
  /// `start` may be shared: it is copied before the first row is added or overwritten.
  GrowingRows(Backend& backend, Buffer<const float> start) : backend_(&backend), rows_(std::move(start)) {}

  const Buffer<const float>& rows() const { return rows_; }

  /// Adds `count` rows and returns them, for a kernel to write. Storage doubles: n rows cost O(n) copies in all.
  Buffer<float> add(Index count);
  /// Rows first, ..., first + count - 1, for a kernel to overwrite. Copies of this object share them.
  Buffer<float> rewrite(Index first, Index count);
  /// Adds source[ids]. The source must not be these rows.
  void append(const Buffer<const float>& source, const std::vector<std::int32_t>& ids);
  /// Drops all rows and keeps their storage.
  void clear() { rows_ = rows_.slice(0, 0); }

 private:
  Backend* backend_;
  Buffer<const float> rows_;  ///< those in use
  Buffer<float> storage_;     ///< absent until the first row is added or overwritten
};

}  // namespace kvbench::methods
