// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// The k largest scores of each row within its range of columns; equal scores: the lower column wins. Where the largest scores
/// of a row are known for a larger k, it is enough to look `among` them: the result is the same.
template <template <class> class Ref>
struct TopK {
  Ref<const float> scores;             ///< [R, n], no NaN
  Ref<const std::int32_t> first;       ///< [R, 1] columns first[r] <= c < last[r] compete
  Ref<const std::int32_t> last;        ///< [R, 1]
  Ref<std::int32_t> ids;               ///< [R, k] chosen columns in increasing order, then -1 where fewer than k compete
  Ref<const std::int32_t> among = {};  ///< [R, c] columns that compete, in increasing order, then -1; absent: all of them
  Ref<const float> among_scores = {};  ///< [R, c] scores of the columns in `among`; absent: looked up in `scores`
  Ref<float> best = {};                ///< [R, k] scores of the chosen columns, 0 where there is none; absent: not kept
  Ref<std::int32_t> rest = {};         ///< [R, c - k] columns of `among` that compete and were not chosen, in increasing
                                       ///< order, then -1; absent: not kept. Asks for k > 0

  static constexpr auto fields(auto& op) {
    return std::tie(op.scores, op.first, op.last, op.ids, op.among, op.among_scores, op.best, op.rest);
  }
};

/// One read of the competing scores, one comparison each.
inline Cost cost(const TopK<Buffer>& a) {
  const double out = bytes(a.ids, a.best, a.rest);
  if (a.among.present()) return {elements(a.among), 2 * bytes(a.among) + out};
  return {elements(a.scores), bytes(a.scores) + out};
}

}  // namespace kvbench::kernels
