// SPDX-License-Identifier: Apache-2.0
// A few directions that carry most of a head's logits: the orthogonal skewing of InfiniGen (arXiv 2406.19707, section
// 4). For orthogonal A, <q A, k A> = <q, k>; where A is the right singular vectors of the queries, a few columns carry
// most of the sum.
#pragma once

#include <span>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

/// The right singular vectors of queries [m, d] as rows [d, d], by increasing singular value (the columns of V
/// reversed). Where the queries span less than d dimensions, the first rows are any orthonormal ones.
Buffer<const float> skewing(const Buffer<const float>& queries, Backend& backend);

/// Sum of |<row, direction>| over the rows [n, d], up to a common factor: one number per direction [c, d].
std::vector<float> column_weights(const Buffer<const float>& rows, const Buffer<const float>& directions,
                                  Backend& backend);

/// The indices of the `count` largest weights, increasing; ties: the lower index.
std::vector<std::int32_t> heaviest(std::span<const float> weights, Index count);

/// The partial keys of one query head, or of all query heads of a kv head.
struct Partial {
  Buffer<const float> directions;  ///< [c, d] the chosen columns of the skewing matrix, as rows
  Buffer<const float> keys;        ///< [n, c] inner products of the keys with them
};
/// The vectors that determine the directions.
struct SkewSample {
  Buffer<const float> skewed_by;  ///< [m, d] queries whose right singular vectors are the skewing matrix
  Buffer<const float> queries;    ///< [m', d] queries whose weights choose the columns
  Buffer<const float> keys;       ///< [n', d] keys whose weights choose as many more; absent: none
};
/// int(ratio d) columns, at least one, by the queries, and as many by the keys of the sample; the partial keys of
/// `keys` [n, d].
Partial make_partial(const SkewSample& sample, const Buffer<const float>& keys, double ratio, Backend& backend);

}  // namespace kvbench::methods
