// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// The k largest scores of each row within its range of columns; equal scores: the lower column wins.
template <template <class> class Ref>
struct TopK {
  Ref<const float> scores;        ///< [R, n], no NaN
  Ref<const std::int32_t> first;  ///< [R, 1] columns first[r] <= c < last[r] compete
  Ref<const std::int32_t> last;   ///< [R, 1]
  Ref<std::int32_t> ids;          ///< [R, k] chosen columns in increasing order, then -1 where fewer than k compete

  static constexpr auto fields(auto& op) { return std::tie(op.scores, op.first, op.last, op.ids); }
};

/// One read of the scores, one comparison each.
inline Cost cost(const TopK<Buffer>& a) { return {elements(a.scores), bytes(a.scores, a.ids)}; }

}  // namespace kvbench::kernels
