// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/lloyd.hpp>

#include <utility>

#include <kvbench/methods/stages.hpp>

namespace kvbench {
namespace {

Buffer<const float> normalized(const Buffer<const float>& rows, Backend& backend) {
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::NormalizeRows<Buffer>{.rows = rows, .out = out});
  return out;
}

/// -|c|^2 / 2 of each centroid: |x - c|^2 = |x|^2 - 2 (<x, c> - |c|^2 / 2).
Buffer<const float> l2_bias(const Buffer<const float>& centroids, Backend& backend) {
  const auto norms2 = backend.allocate<double>(centroids.rows());
  backend.run(kernels::SquaredNorms<Buffer>{.rows = centroids, .out = norms2});
  std::vector<float> bias;
  for (const double norm2 : backend.read(norms2)) bias.push_back(static_cast<float>(-norm2 / 2));
  return backend.adopt(std::move(bias), centroids.rows());
}

/// Gives points to centroids; holds what all iterations share.
class NearestCentroid {
 public:
  NearestCentroid(const Buffer<const float>& points, Distance distance, Backend& backend)
      : backend_(backend),
        distance_(distance),
        points_(distance == Distance::cosine ? normalized(points, backend) : points),
        best_(backend.allocate<std::int32_t>(points.rows())),
        score_(backend.allocate<float>(points.rows())) {}

  const Buffer<std::int32_t>& to(const Buffer<const float>& centroids) const {
    backend_.run(kernels::BestMatch<Buffer>{
        .points = points_,
        .candidates = distance_ == Distance::cosine ? normalized(centroids, backend_) : centroids,
        .bias = distance_ == Distance::l2 ? l2_bias(centroids, backend_) : Buffer<const float>{},
        .best = best_,
        .score = score_,
    });
    return best_;
  }

 private:
  Backend& backend_;
  Distance distance_;
  Buffer<const float> points_;
  Buffer<std::int32_t> best_;
  Buffer<float> score_;
};

}  // namespace

Clustering lloyd(const Buffer<const float>& points, const std::vector<TokenId>& start, const LloydOptions& options,
                 Backend& backend) {
  const auto count = static_cast<Index>(start.size());
  const auto centroids = gathered(points, start, backend);
  Clustering result{.centroids = centroids, .fixed = count == 0};
  if (count == 0) return result;

  const NearestCentroid nearest(points, options.distance, backend);
  const auto mass = backend.allocate<float>(count);
  while (result.iterations < options.iterations) {
    const Buffer<std::int32_t>& labels = nearest.to(centroids);
    std::vector<std::int32_t> found = backend.read(labels);
    result.fixed = found == result.labels;
    if (result.fixed) return result;
    result.labels = std::move(found);
    backend.run(kernels::MeanRows<Buffer>{.rows = points, .labels = labels, .out = centroids, .mass = mass});
    ++result.iterations;
  }
  if (options.relabel) {
    std::vector<std::int32_t> found = backend.read(nearest.to(centroids));
    result.fixed = found == result.labels;
    result.labels = std::move(found);
  }
  return result;
}

}  // namespace kvbench
