// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/estimated_clusters.hpp>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

Buffer<std::int32_t> nearest(const Buffer<const float>& points, const Buffer<const float>& centroids,
                             Backend& backend) {
  const auto best = backend.allocate<std::int32_t>(points.rows());
  backend.run(kernels::BestMatch<Buffer>{.points = points, .candidates = centroids, .best = best});
  return best;
}

/// Moves each centroid that has points to the direction of their mean; the others stay as they are. Returns the labels
/// of the points, which alone decide where the centroids are now.
std::vector<std::int32_t> move_to_directions(const Buffer<const float>& points, const Buffer<float>& centroids,
                                             Backend& backend) {
  const Index count = centroids.rows();
  const auto both = backend.allocate<float>(2 * count, centroids.cols());  // moved, and as they are
  const auto moved = both.slice(0, count), mass = backend.allocate<float>(count);
  copy_rows(centroids, moved, backend);
  copy_rows(centroids, both.slice(count, count), backend);
  const auto labels = nearest(points, centroids, backend);
  backend.run(kernels::MeanRows<Buffer>{.rows = points, .labels = labels, .out = moved, .mass = mass});
  backend.run(kernels::NormalizeRows<Buffer>{.rows = moved, .out = moved});
  std::vector<std::int32_t> rows;
  for (const float members : backend.read(mass)) {
    const auto c = static_cast<std::int32_t>(rows.size());
    rows.push_back(members > 0 ? c : c + static_cast<std::int32_t>(count));
  }
  copy_rows(gathered(both, std::move(rows), backend), centroids, backend);
  return backend.read(labels);
}

}  // namespace

EstimatedClusters segmented_clusters(const Buffer<const float>& keys, const Buffer<const float>& values, Index first,
                                     Index count, Index segments, Index iterations, Backend& backend) {
  const Index n = keys.rows(), length = n / segments, share = count / segments;
  const Buffer<const float> centred = plus_row(keys, mean_of_rows(keys, backend), -1, backend);
  std::vector<std::int32_t> start;
  for (Index c = 0; c < count; ++c) start.push_back(static_cast<std::int32_t>((2 * c + 1) * n / (2 * count)));
  const auto centroids = gathered(centred, std::move(start), backend);
  for (Index s = 0; s < segments; ++s) {
    std::vector<std::int32_t> before;
    for (Index i = 0; i < iterations; ++i) {
      auto now = move_to_directions(centred.slice(s * length, length), centroids.slice(s * share, share), backend);
      if (now == before) break;  // the iterations that are left change nothing
      before = std::move(now);
    }
  }
  const auto labels = nearest(centred, centroids, backend);
  const auto mean_keys = backend.allocate<float>(count, keys.cols()), mass = backend.allocate<float>(count);
  const auto mean_values = backend.allocate<float>(count, values.cols());
  for (const auto& [rows, out] : {std::pair(keys, mean_keys), std::pair(values, mean_values)})
    backend.run(kernels::MeanRows<Buffer>{.rows = rows, .labels = labels, .out = out, .mass = mass});

  std::vector<std::vector<TokenId>> members(static_cast<std::size_t>(count));
  const std::vector<std::int32_t> of = backend.read(labels);
  for (std::size_t j = 0; j < of.size(); ++j)
    members[static_cast<std::size_t>(of[j])].push_back(static_cast<TokenId>(first + static_cast<Index>(j)));
  EstimatedClusters clusters;
  std::vector<std::int32_t> used;
  for (std::size_t c = 0; c < members.size(); ++c) {
    if (members[c].empty()) continue;
    used.push_back(static_cast<std::int32_t>(c));
    clusters.tokens.push_back(std::move(members[c]));
  }
  clusters.centroids = gathered(mean_keys, used, backend);
  clusters.values = gathered(mean_values, used, backend);
  return clusters;
}

}  // namespace kvbench::methods
