// SPDX-License-Identifier: Apache-2.0
// Row-wise building blocks: gather, norms, rotation, column sums, softmax, pooling, reduction over the query group.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// out[i] = source[ids[i]].
template <template <class> class Ref>
struct GatherRows {
  Ref<const float> source;      ///< [n, c]
  Ref<const std::int32_t> ids;  ///< [k, 1], each in [0, n)
  Ref<float> out;               ///< [k, c]

  static constexpr auto fields(auto& op) { return std::tie(op.source, op.ids, op.out); }
};

/// out[i] = |rows[i]|^2, summed in fp64.
template <template <class> class Ref>
struct SquaredNorms {
  Ref<const float> rows;  ///< [n, c]
  Ref<double> out;        ///< [n, 1]

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.out); }
};

/// Rotary position embedding (RoFormer, arXiv 2104.09864): turns row i by offsets[i] positions.
/// Pair p of the first `rotary_dims` columns turns by offset * theta^(-2p / rotary_dims); pairs are (p, p +
/// rotary_dims/2), or (2p, 2p+1) where `interleaved`. Angles are computed in fp64. Columns beyond rotary_dims are
/// copied.
template <template <class> class Ref>
struct RotateRows {
  Ref<const float> rows;            ///< [k, d]
  Ref<const std::int64_t> offsets;  ///< [k, 1] positions, may be negative
  double theta = 10000;
  Index rotary_dims = 0;  ///< even, <= d
  bool interleaved = false;
  Ref<float> out;  ///< [k, d]

  static constexpr auto fields(auto& op) {
    return std::tie(op.rows, op.offsets, op.theta, op.rotary_dims, op.interleaved, op.out);
  }
};

/// Attention mass that each key receives from a block of queries: out[g][j] = sum_i exp(scores[g*m+i][j] - lse[g*m+i]).
template <template <class> class Ref>
struct ColumnSums {
  Ref<const float> scores;       ///< [G*m, n] logits, -inf where masked
  Ref<const float> log_sum_exp;  ///< [G*m, 1]
  Ref<float> out;                ///< [G, n]; summed over i in increasing order

  static constexpr auto fields(auto& op) { return std::tie(op.scores, op.log_sum_exp, op.out); }
};

/// Rows of the softmax from their logits: out[r][j] = exp(scores[r][j] - log_sum_exp[r]); zeros where log_sum_exp is
/// -inf.
template <template <class> class Ref>
struct SoftmaxRows {
  Ref<const float> scores;       ///< [R, n] logits, -inf where masked
  Ref<const float> log_sum_exp;  ///< [R, 1]
  Ref<float> out;                ///< [R, n]
  Ref<float> norm;               ///< [R, 1] |out[r]|_2, squares summed in fp64

  static constexpr auto fields(auto& op) { return std::tie(op.scores, op.log_sum_exp, op.out, op.norm); }
};

enum class Pooling { none, max, mean };

/// 1-D pooling along each row, stride 1, same length. `max` ignores positions outside the row; `mean` counts them as
/// zeros (torch.nn.functional.avg_pool1d with padding kernel/2, as the SnapKV repository uses it).
template <template <class> class Ref>
struct PoolRows {
  Ref<const float> rows;  ///< [r, n]
  Pooling mode = Pooling::max;
  Index kernel = 1;  ///< odd
  Ref<float> out;    ///< [r, n], not the same memory as rows

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.mode, op.kernel, op.out); }
};

enum class Reduction { mean, max, sum };

/// Reduction over the query heads of a group: out[i] = reduction of rows[i], rows[m + i], rows[2m + i], ...
template <template <class> class Ref>
struct ReduceRows {
  Ref<const float> rows;  ///< [G*m, n]
  Reduction mode = Reduction::mean;
  Ref<float> out;  ///< [m, n]

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.mode, op.out); }
};

inline Cost cost(const GatherRows<Buffer>& a) { return {0, bytes(a.ids) + 2 * bytes(a.out)}; }
inline Cost cost(const SquaredNorms<Buffer>& a) { return {2 * elements(a.rows), bytes(a.rows, a.out)}; }
inline Cost cost(const RotateRows<Buffer>& a) { return {3 * elements(a.rows), bytes(a.rows, a.offsets, a.out)}; }
inline Cost cost(const ColumnSums<Buffer>& a) {
  return {3 * elements(a.scores), bytes(a.scores, a.log_sum_exp, a.out)};
}
inline Cost cost(const SoftmaxRows<Buffer>& a) {
  return {4 * elements(a.scores), bytes(a.scores, a.log_sum_exp, a.out, a.norm)};
}
inline Cost cost(const PoolRows<Buffer>& a) {
  return {a.mode == Pooling::none ? 0 : elements(a.rows) * static_cast<double>(a.kernel), bytes(a.rows, a.out)};
}
inline Cost cost(const ReduceRows<Buffer>& a) { return {elements(a.rows), bytes(a.rows, a.out)}; }

}  // namespace kvbench::kernels
