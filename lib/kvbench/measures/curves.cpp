// SPDX-License-Identifier: Apache-2.0
#include <kvbench/measures/curves.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::measures {
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

namespace {

constexpr Index rows_per_product = 256;  // about as many as the usual distances, so that half of each product is used

}  // namespace

std::vector<double> similarity_by_distance(const Buffer<const float>& rows, Index max_distance, Backend& backend) {
  const Index n = rows.rows(), distances = std::min(max_distance, n - 1);
  if (distances < 1) return {};
  auto unit = backend.allocate<float>(n, rows.cols());
  backend.run(kernels::NormalizeRows<Buffer>{.rows = rows, .out = unit});
  std::vector<double> sums(static_cast<std::size_t>(distances));
  for (Index begin = 0; begin < n - 1; begin += rows_per_product) {
    const Index count = std::min(rows_per_product, n - 1 - begin);
    const Index width = std::min(count + distances, n - begin) -
                        1;  // rows from the first partner of the first row to the last partner of the last
    const std::vector<float> cosines =
        backend.read(methods::inner_products(unit.slice(begin, count), unit.slice(begin + 1, width), backend));
    for (Index i = 0; i < count; ++i) {
      const float* const row = cosines.data() + i * width + i;  // the partner of row i at distance 1 is column i
      for (Index l = 0; l < std::min(distances, width - i); ++l) sums[static_cast<std::size_t>(l)] += row[l];
    }
  }
  for (Index l = 0; l < distances; ++l) sums[static_cast<std::size_t>(l)] /= static_cast<double>(n - 1 - l);
  return sums;
}

}  // namespace kvbench::measures
