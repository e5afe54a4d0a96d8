// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/measures/curves.hpp>

#include <algorithm>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::bounds {
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

}  // namespace kvbench::bounds
