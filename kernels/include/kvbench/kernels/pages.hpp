// SPDX-License-Identifier: Apache-2.0
// Channel-wise bounds of pages of keys (Quest, arXiv 2406.10774): sum_c max(q_c lo_c, q_c hi_c) = <max(q, 0), hi> +
// <min(q, 0), lo> is one inner product of rows of 2d.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// out[p] = (largest, then smallest of each column) over the rows p*page .. min(n, (p+1)*page) - 1.
template <template <class> class Ref>
struct PageBounds {
  Ref<const float> rows;  ///< [n, d]
  Index page = 16;        ///< rows per page
  Ref<float> out;         ///< [ceil(n / page), 2d]

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.page, op.out); }
};

/// out[i] = (max(rows[i], 0), then min(rows[i], 0)).
template <template <class> class Ref>
struct SplitSigns {
  Ref<const float> rows;  ///< [m, d]
  Ref<float> out;         ///< [m, 2d]

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.out); }
};

inline Cost cost(const PageBounds<Buffer>& a) { return {2 * elements(a.rows), bytes(a.rows, a.out)}; }
inline Cost cost(const SplitSigns<Buffer>& a) { return {elements(a.out), bytes(a.rows, a.out)}; }

}  // namespace kvbench::kernels
