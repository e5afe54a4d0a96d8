// SPDX-License-Identifier: Apache-2.0
// Copies, products and selections of rows of buffers.
// Rows of a growing number of tokens. New rows are appended to the rows of a context, or to no rows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <kvbench/core/ids.hpp>
#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

/// 0, 1, ..., count - 1, shifted by `first`.
std::vector<TokenId> token_range(Index first, Index count);

/// The rows `ids` [k, 1] of `source` [n, c], in this order, as a new buffer [k, c].
Buffer<float> gathered(const Buffer<const float>& source, const Buffer<const std::int32_t>& ids, Backend& backend);
Buffer<float> gathered(const Buffer<const float>& source, std::vector<std::int32_t> ids, Backend& backend);
/// The same, read-only: where `ids` are consecutive, the result is a slice and not a copy.
Buffer<const float> rows_at(const Buffer<const float>& source, const std::vector<std::int32_t>& ids, Backend& backend);
/// The first `count` columns of `source` [n, c] as a new buffer [n, count].
Buffer<const float> first_columns(const Buffer<const float>& source, Index count, Backend& backend);
/// The columns of `source` [n, c] as the rows of a new buffer [c, n].
Buffer<const float> transposed(const Buffer<const float>& source, Backend& backend);
/// Copies `source` [k, c] to `out` [k, c]. Either may be a slice, and both may be empty.
void copy_rows(const Buffer<const float>& source, const Buffer<float>& out, Backend& backend);
/// The mean of at least one row, [1, c].
Buffer<float> mean_of_rows(const Buffer<const float>& rows, Backend& backend);
/// `rows` [n, c] + factor * `row` [1, c], as a new buffer.
Buffer<float> plus_row(const Buffer<const float>& rows, const Buffer<const float>& row, float factor, Backend& backend);
/// |rows[i]|^2, summed in fp64.
std::vector<double> squared_norms(const Buffer<const float>& rows, Backend& backend);
/// <a[i], b[j]> of a [m, c] and b [n, c] as a new buffer [m, n].
Buffer<float> inner_products(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend);
/// <rows[i], matrix[j]> of rows [n, c] and matrix [m, c] as a new buffer [n, m], summed in fp64.
Buffer<const float> projected(const Buffer<const float>& rows, const Buffer<const float>& matrix, Backend& backend);
/// rows[i] / |rows[i]| of [n, c]; rows of zeros stay zero.
Buffer<const float> normalized(const Buffer<const float>& rows, Backend& backend);

/// The logits scale * <queries[r], keys[j]> of j < last[r % m], -inf beyond, and what a softmax over them needs.
struct ScoredRows {
  Buffer<float> scores;            ///< [R, n]
  Buffer<float> max, log_sum_exp;  ///< [R, 1]
};
ScoredRows scored_rows(const Buffer<const float>& queries, const Buffer<const float>& keys,
                       std::vector<std::int32_t> last, float scale, Backend& backend);

/// The `count` best columns of each row of `scores` among columns first, ..., last - 1, as TopK returns them: [rows,
/// count].
Buffer<std::int32_t> best_columns(const Buffer<const float>& scores, Index first, Index last, Index count,
                                  Backend& backend);

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
