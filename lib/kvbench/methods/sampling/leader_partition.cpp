// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/leader_partition.hpp>

#include <algorithm>
#include <cmath>

namespace kvbench::methods {
namespace {

constexpr int max_steps = 40;
constexpr float tolerance = 1e-3f;

/// A radius that covers all keys from the first one, with a margin for the rounding of distances.
float covering_radius(Backend& backend, const Buffer<const float>& keys) {
  auto distances = backend.allocate<float>(keys.rows());
  backend.run(kernels::SquaredDistances<Buffer>{.points = keys, .centres = keys.slice(0, 1), .out = distances});
  return std::sqrt(std::ranges::max(backend.read(distances))) * (1 + tolerance);
}

/// Counts the clusters at a sequence of radii.
class ClusterCounter {
 public:
  ClusterCounter(Backend& backend, const Buffer<const float>& keys, Index capacity)
      : backend_(backend),
        keys_(keys),
        representatives_(backend.allocate<float>(std::min(capacity, keys.rows()), keys.cols())),
        count_(backend.allocate<std::int32_t>(1)) {}

  /// The number of clusters, or any number above the capacity where there are more than that.
  Index count(float radius) {
    if (keys_.rows() == 0) return 0;
    backend_.fill(count_, 0);
    backend_.run(kernels::LeaderClusters<Buffer>{
        .points = keys_, .radius = radius, .representatives = representatives_, .count = count_});
    return backend_.read(count_)[0];
  }

 private:
  Backend& backend_;
  Buffer<const float> keys_;
  Buffer<float> representatives_;
  Buffer<std::int32_t> count_;
};

/// See smallest_leader_partition().
float smallest_radius(Backend& backend, const Buffer<const float>& keys, Index capacity) {
  ClusterCounter clusters(backend, keys, capacity);
  if (clusters.count(0) <= capacity) return 0;
  float too_small = 0, fits = covering_radius(backend, keys);
  Index count = 1;
  for (int step = 0; step < max_steps && count < capacity && fits - too_small > tolerance * fits; ++step) {
    const float radius = too_small + (fits - too_small) / 2;
    const Index taken = clusters.count(radius);
    if (taken > capacity) {
      too_small = radius;
    } else {
      fits = radius;
      count = taken;
    }
  }
  return fits;
}

}  // namespace

std::optional<LeaderPartition> leader_partition(Backend& backend, const Buffer<const float>& keys, float radius,
                                                Index capacity) {
  const Index n = keys.rows();
  LeaderPartition partition{.radius = radius};
  if (n == 0) return partition;
  auto count = backend.allocate<std::int32_t>(1);
  auto labels = backend.allocate<std::int32_t>(n);
  backend.fill(count, 0);
  capacity = std::min(capacity, n);
  backend.run(kernels::LeaderClusters<Buffer>{.points = keys,
                                              .radius = radius,
                                              .representatives = backend.allocate<float>(capacity, keys.cols()),
                                              .count = count,
                                              .labels = labels});
  if (backend.read(count)[0] > capacity) return std::nullopt;
  partition.labels = backend.read(labels);
  for (Index i = 0; i < n; ++i) {
    if (partition.labels[static_cast<std::size_t>(i)] == partition.clusters()) {
      partition.representatives.push_back(static_cast<TokenId>(i));
    }
  }
  return partition;
}

LeaderPartition smallest_leader_partition(Backend& backend, const Buffer<const float>& keys, Index capacity) {
  return leader_partition(backend, keys, smallest_radius(backend, keys, capacity), capacity).value();
}

}  // namespace kvbench::methods
