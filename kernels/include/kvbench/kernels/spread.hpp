// SPDX-License-Identifier: Apache-2.0
// Rows added to the rows after them: CaM (ICML 2024) merges an evicted value into values that stay in the cache.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// rows[s + j] += factor * rows[s] for j = 1 .. count, as far as there are rows, for one source s after the other: a
/// source that has received from earlier sources passes on the sum. Sums in fp32.
template <template <class> class Ref>
struct SpreadRows {
  Ref<const std::int32_t> sources;  ///< [k, 1] rows in the order in which they are added
  Index count = 1;
  float factor = 1;
  Ref<float> rows;  ///< [n, c] in and out

  static constexpr auto fields(auto& op) { return std::tie(op.sources, op.count, op.factor, op.rows); }
};

/// 2 flops for each source, receiving row and column; rows are read and written as often.
inline Cost cost(const SpreadRows<Buffer>& a) {
  const double received = elements(a.sources) * static_cast<double>(a.count) * static_cast<double>(a.rows.cols());
  return {2 * received, 2 * sizeof(float) * received + bytes(a.sources)};
}

}  // namespace kvbench::kernels
