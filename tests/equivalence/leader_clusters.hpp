// SPDX-License-Identifier: Apache-2.0
// Clusters and centres of points.
#pragma once

#include <algorithm>
#include <vector>

#include "compare.hpp"

namespace kvbench::test {

struct Clusters {
  std::vector<std::int32_t> labels;
  std::int32_t count;
  std::vector<float> representatives;  // those in use
};

/// Feeds the points in calls of `block`. Not labelled: clusters are counted alone.
inline Clusters clusters(Backend& b, const std::vector<float>& points, Index n, Index d, float radius, Index capacity,
                         Index block, bool labelled = true) {
  auto all = b.adopt(points, n, d);
  auto representatives = b.allocate<float>(capacity, d);
  auto count = b.adopt(std::vector<std::int32_t>{0}, 1);
  auto labels = b.allocate<std::int32_t>(n);
  for (Index begin = 0; begin < n; begin += block) {
    const Index size = std::min(block, n - begin);
    kernels::LeaderClusters<Buffer> op{all.slice(begin, size), radius, representatives, count};
    if (labelled) op.labels = labels.slice(begin, size);
    b.run(op);
  }
  const std::int32_t used = b.read(count)[0];
  return {b.read(labels), used, b.read(representatives.slice(0, std::min<Index>(used, capacity)))};
}

struct Centers {
  std::vector<std::int32_t> order;
  std::vector<float> radius2;
};

inline Centers k_center(Backend& b, const std::vector<float>& points, Index n, Index d, Index k, Index start) {
  auto order = b.allocate<std::int32_t>(k);
  auto radius2 = b.allocate<float>(k);
  b.run(kernels::KCenter<Buffer>{b.adopt(points, n, d), start, order, radius2});
  return {b.read(order), b.read(radius2)};
}

}  // namespace kvbench::test
