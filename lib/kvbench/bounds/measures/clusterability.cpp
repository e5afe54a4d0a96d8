// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/measures/curves.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

/// Root mean square distance of the points to their mean.
double rms_distance_to_mean(const Buffer<const float>& points, Backend& backend) {
  const Index n = points.rows();
  auto mean_row = backend.allocate<float>(1, points.cols());
  auto distances = backend.allocate<float>(n, 1);
  backend.run(
      kernels::MeanRows<Buffer>{.rows = points,
                                .labels = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(n)), n),
                                .out = mean_row,
                                .mass = backend.allocate<float>(1)});
  backend.run(kernels::SquaredDistances<Buffer>{.points = points, .centres = mean_row, .out = distances});
  const std::vector<float> squares = backend.read(distances);
  return std::sqrt(mean(std::vector<double>(squares.begin(), squares.end())));
}

}  // namespace

std::vector<double> clusterability(const Buffer<const float>& points, Index max_centres, Backend& backend) {
  const Index n = points.rows(), centres = std::min(n, max_centres);
  if (centres < 1) return {};
  // The distance of centre k + 1 from the first k centres is the covering radius of those k.
  const Index taken = std::min(n, centres + 1);
  auto radius2 = backend.allocate<float>(taken);
  backend.run(
      kernels::KCenter<Buffer>{.points = points, .order = backend.allocate<std::int32_t>(taken), .radius2 = radius2});
  const std::vector<float> squares = backend.read(radius2);
  const double spread = rms_distance_to_mean(points, backend);
  std::vector<double> radius(static_cast<std::size_t>(centres));
  for (std::size_t k = 1; k < squares.size(); ++k) {
    radius[k - 1] = squares[k] > 0 ? std::sqrt(static_cast<double>(squares[k])) / spread : 0;
  }
  return radius;
}

}  // namespace kvbench::bounds
