// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

/// Summed in fp64, but a distance is an fp32 number: comparisons and ties are decided on the rounded value.
float squared_distance(const float* a, const float* b, Index d) {
  double sum = 0;
  for (Index c = 0; c < d; ++c) {
    const double difference = static_cast<double>(a[c]) - b[c];
    sum += difference * difference;
  }
  return static_cast<float>(sum);
}

}  // namespace

template <>
void run(const SquaredDistances<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.points.rows; ++i)
    for (Index c = 0; c < op.centres.rows; ++c)
      op.out(i, c) = squared_distance(op.points.row(i), op.centres.row(c), op.points.cols);
}

template <>
void run(const KCenter<HostMatrix>& op, Context&) {
  constexpr float taken = -1;
  std::vector<float> nearest(static_cast<std::size_t>(op.points.rows), std::numeric_limits<float>::infinity());
  Index centre = op.start;
  for (Index k = 0; k < op.order.rows; ++k) {
    if (k > 0) centre = std::max_element(nearest.begin(), nearest.end()) - nearest.begin();
    float& distance = nearest[static_cast<std::size_t>(centre)];
    op.order[k] = static_cast<std::int32_t>(centre);
    op.radius2[k] = distance;
    distance = taken;
    for (Index i = 0; i < op.points.rows; ++i) {
      float& mine = nearest[static_cast<std::size_t>(i)];
      if (mine != taken)
        mine = std::min(mine, squared_distance(op.points.row(i), op.points.row(centre), op.points.cols));
    }
  }
}

template <>
void run(const LeaderClusters<HostMatrix>& op, Context&) {
  const double radius2 = static_cast<double>(op.radius) * op.radius;
  const Index capacity = op.representatives.rows;
  std::int32_t& count = op.count[0];
  for (Index i = 0; i < op.points.rows; ++i) {
    std::int32_t label = -1;
    float best = std::numeric_limits<float>::infinity();
    for (std::int32_t r = 0; r < count && count <= capacity; ++r) {
      const float distance = squared_distance(op.points.row(i), op.representatives.row(r), op.points.cols);
      if (label >= 0 && distance >= best) continue;
      best = distance;
      label = r;
    }
    if (count <= capacity && (label < 0 || best > radius2)) {
      label = count < capacity ? count : -1;
      if (label >= 0) std::copy_n(op.points.row(i), op.points.cols, op.representatives.row(label));
      ++count;
    }
    if (!op.labels.empty()) op.labels[i] = label;
  }
}

}  // namespace kvbench::kernels::ref
