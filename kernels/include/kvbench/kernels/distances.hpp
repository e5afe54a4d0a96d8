// SPDX-License-Identifier: Apache-2.0
// Squared Euclidean distances and the two loops built on them. Distances are sums of squared differences (never
// expanded into norms and a product, which cancels for near points), in fp32.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// out[i][c] = |points[i] - centres[c]|^2.
template <template <class> class Ref>
struct SquaredDistances {
  Ref<const float> points;   ///< [n, d]
  Ref<const float> centres;  ///< [c, d]
  Ref<float> out;            ///< [n, c]

  static constexpr auto fields(auto& op) { return std::tie(op.points, op.centres, op.out); }
};

/// Greedy k-center (Gonzalez; SubGen section 3.2 cites Dyer and Frieze): starts at point `start`, then selects the
/// point farthest from the centres so far; ties: the lowest index. A point is selected once only: when only centres and
/// duplicates of centres remain, the lowest index that is not a centre follows.
template <template <class> class Ref>
struct KCenter {
  Ref<const float> points;  ///< [n, d]
  Index start = 0;
  Ref<std::int32_t> order;  ///< [k, 1] centres in the order of selection, k <= n: the first k' of them solve k'
  Ref<float> radius2;       ///< [k, 1] squared distance from order[i] to the nearest earlier centre; +inf for the first

  static constexpr auto fields(auto& op) { return std::tie(op.points, op.start, op.order, op.radius2); }
};

/// Online clustering by a fixed radius (SubGen Algorithm 1, lines 12-22): each point in turn joins its nearest
/// representative when that lies within `radius`, else it becomes the representative of a new cluster. Ties: the lowest
/// cluster.
template <template <class> class Ref>
struct LeaderClusters {
  Ref<const float> points;     ///< [n, d] in stream order
  float radius = 0;            ///< Euclidean, >= 0
  Ref<float> representatives;  ///< [capacity, d] in and out: the first count[0] rows are in use
  Ref<std::int32_t> count;     ///< [1, 1] in and out; capacity + 1 where a point would have opened one cluster too many
  /// [n, 1] cluster of each point; -1 from the point on that exceeds the capacity. Absent: clusters are only counted.
  /// This needs any representative within the radius instead of the nearest, which is much less work on the host.
  Ref<std::int32_t> labels = {};

  static constexpr auto fields(auto& op) {
    return std::tie(op.points, op.radius, op.representatives, op.count, op.labels);
  }
};

/// 3 flops for each point, centre and dimension.
inline Cost cost(const SquaredDistances<Buffer>& a) {
  return {3 * elements(a.out) * static_cast<double>(a.points.cols()), bytes(a.points, a.centres, a.out)};
}
inline Cost cost(const KCenter<Buffer>& a) {
  const double k = static_cast<double>(a.order.rows());
  return {3 * k * elements(a.points), k * bytes(a.points) + bytes(a.order, a.radius2)};
}
/// Upper estimate: every point against the full capacity.
inline Cost cost(const LeaderClusters<Buffer>& a) {
  return {3 * elements(a.points) * static_cast<double>(a.representatives.rows()),
          bytes(a.points, a.representatives, a.labels)};
}

}  // namespace kvbench::kernels
