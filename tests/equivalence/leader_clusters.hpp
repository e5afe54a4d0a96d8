// SPDX-License-Identifier: Apache-2.0
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

/// Feeds the points in calls of `block`.
inline Clusters clusters(Backend& b, const std::vector<float>& points, Index n, Index d, float radius, Index capacity,
                         Index block) {
  auto all = b.adopt(points, n, d);
  auto representatives = b.allocate<float>(capacity, d);
  auto count = b.adopt(std::vector<std::int32_t>{0}, 1);
  auto labels = b.allocate<std::int32_t>(n);
  for (Index begin = 0; begin < n; begin += block) {
    const Index size = std::min(block, n - begin);
    b.run(kernels::LeaderClusters<Buffer>{all.slice(begin, size), radius, representatives, count, labels.slice(begin, size)});
  }
  const std::int32_t used = b.read(count)[0];
  return {b.read(labels), used, b.read(representatives.slice(0, std::min<Index>(used, capacity)))};
}

}  // namespace kvbench::test
