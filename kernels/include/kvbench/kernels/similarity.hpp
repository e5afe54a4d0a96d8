// SPDX-License-Identifier: Apache-2.0
// Building blocks of clustering, merging and recall: inner products, the most similar row, means of labelled rows.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// out[i] = rows[i] / |rows[i]|_2; a row of zeros stays zero.
template <template <class> class Ref>
struct NormalizeRows {
  Ref<const float> rows;  ///< [n, d]
  Ref<float> out;         ///< [n, d], may be the same memory as rows

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.out); }
};

/// out[i][j] = <a[i], b[j]>.
template <template <class> class Ref>
struct InnerProducts {
  Ref<const float> a;  ///< [m, d]
  Ref<const float> b;  ///< [n, d]
  Ref<float> out;      ///< [m, n]

  static constexpr auto fields(auto& op) { return std::tie(op.a, op.b, op.out); }
};

/// What a back end keeps of the points of a repeated search; known to that back end alone.
struct MatchState;

/// The most similar candidate of each point: argmax of <points[i], candidates[c]> + bias[c] over first[i] <= c <
/// last[i]; ties: the lowest c. Normalised rows make it the cosine; bias[c] = -|candidates[c]|^2 / 2 makes it the
/// nearest in Euclidean distance. A search that is repeated while candidates move (k-means) passes the same `state` to
/// all of its calls, and `moved` from the second call on; it has no ranges, and calls with `moved` compute no scores.
template <template <class> class Ref>
struct BestMatch {
  Ref<const float> points;             ///< [n, d]
  Ref<const float> candidates;         ///< [c, d]
  Ref<const float> bias = {};          ///< [c, 1]; absent: 0
  Ref<const std::int32_t> first = {};  ///< [n, 1]; absent: 0
  Ref<const std::int32_t> last = {};   ///< [n, 1]; absent: c
  bool skip_self = false;              ///< candidate i is excluded for point i
  Index pairs = 0;                     ///< number of comparisons where ranges are given, for the declared cost; 0: all
  Ref<const std::int32_t> moved =
      {};                       ///< [c, 1] 0: candidate and bias are those of the call that wrote `best` and `state`
  MatchState* state = nullptr;  ///< of Backend::make_match_state(); null: nothing is kept between calls
  Ref<std::int32_t> best;       ///< [n, 1]; -1 where a point has no candidate. In and out with `moved`
  Ref<float> score = {};        ///< [n, 1] of the best; -inf where there is none. Absent: not computed

  static constexpr auto fields(auto& op) {
    return std::tie(op.points, op.candidates, op.bias, op.first, op.last, op.skip_self, op.pairs, op.moved, op.state,
                    op.best, op.score);
  }
};

/// Weighted means of the rows of each label: out[c] = sum of weights[i] * rows[i] / sum of weights[i] over labels[i] =
/// c, summed in increasing i. Rows of `out` whose label does not occur are left as they are.
template <template <class> class Ref>
struct MeanRows {
  Ref<const float> rows;           ///< [n, d]
  Ref<const std::int32_t> labels;  ///< [n, 1] in [0, c), or -1: the row is left out
  Ref<const float> weights = {};   ///< [n, 1] > 0; absent: 1
  Ref<float> out;                  ///< [c, d] in and out
  Ref<float> mass;                 ///< [c, 1] sum of the weights; 0 where the label does not occur

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.labels, op.weights, op.out, op.mass); }
};

inline Cost cost(const NormalizeRows<Buffer>& a) { return {3 * elements(a.rows), bytes(a.rows, a.out)}; }
inline Cost cost(const InnerProducts<Buffer>& a) {
  return {2 * elements(a.out) * static_cast<double>(a.a.cols()), bytes(a.a, a.b, a.out)};
}
/// Every point against every candidate, or the pairs that the caller counts: the ranges lie where kernels run.
inline Cost cost(const BestMatch<Buffer>& a) {
  const double pairs = a.pairs > 0 ? static_cast<double>(a.pairs)
                                   : static_cast<double>(a.points.rows()) * static_cast<double>(a.candidates.rows());
  return {2 * pairs * static_cast<double>(a.points.cols()), bytes(a.points, a.candidates, a.best, a.score)};
}
inline Cost cost(const MeanRows<Buffer>& a) {
  return {2 * elements(a.rows), bytes(a.rows, a.labels, a.weights, a.out, a.mass)};
}

}  // namespace kvbench::kernels
