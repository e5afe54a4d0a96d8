// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/measures/curves.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using doctest::Approx;

namespace {

std::vector<double> curve(Backend& backend, const std::vector<float>& rows, Index cols, Index max_distance) {
  const auto n = static_cast<Index>(rows.size()) / cols;
  return similarity_by_distance(backend.adopt(std::vector(rows), n, cols), max_distance, backend);
}

/// Mean cosine of the pairs that are `distance` apart, term by term.
double serial(const std::vector<float>& rows, std::size_t cols, std::size_t distance) {
  double sum = 0;
  const std::size_t pairs = rows.size() / cols - distance;
  for (std::size_t i = 0; i < pairs; ++i) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t c = 0; c < cols; ++c) {
      const double a = rows[i * cols + c], b = rows[(i + distance) * cols + c];
      ab += a * b, aa += a * a, bb += b * b;
    }
    sum += ab / std::sqrt(aa * bb);
  }
  return sum / static_cast<double>(pairs);
}

std::vector<float> noise(std::size_t count) {
  std::vector<float> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox4x32({{i, 0, 0, 0}}, {7, 7});
    out.push_back(static_cast<float>(uniform52(words.x[0], words.x[1]) - 0.3));
  }
  return out;
}

}  // namespace

// Rows east, north, east, north-east: cosines (0, 0, s) at distance 1, (1, s) at 2, (s) at 3, s = 1/sqrt(2). Lengths do
// not matter.
TEST_CASE("mean cosine of the pairs at each distance") {
  const auto backend = make_ref_backend();
  const double s = std::sqrt(0.5);
  const auto means = curve(*backend, {1, 0, 0, 2, 3, 0, 5, 5}, 2, 255);
  REQUIRE(means.size() == 3);
  CHECK(means[0] == Approx(s / 3));
  CHECK(means[1] == Approx((1 + s) / 2));
  CHECK(means[2] == Approx(s));
}

TEST_CASE("a row of zeros has similarity 0") {
  const auto backend = make_ref_backend();
  CHECK(curve(*backend, {1, 0, 1}, 1, 255) == std::vector<double>{0, 1});
}

TEST_CASE("no pairs, no curve") {
  const auto backend = make_ref_backend();
  CHECK(curve(*backend, {1, 0}, 2, 255).empty());
  CHECK(curve(*backend, {}, 2, 255).empty());
}

// Sizes around the block size of the products.
TEST_CASE("blocks count every pair once") {
  for (const std::size_t n : {255u, 256u, 257u, 258u, 511u, 513u, 700u}) {
    for (const Index distances : {1, 3, 255, 600}) {
      CAPTURE(n);
      CAPTURE(distances);
      const std::vector<float> rows = noise(n * 3);
      const auto backend = make_cpu_backend();
      const auto means = curve(*backend, rows, 3, distances);
      REQUIRE(static_cast<Index>(means.size()) == std::min(distances, static_cast<Index>(n) - 1));
      for (std::size_t l = 1; l <= means.size(); l += l < 4 ? 1 : 37) {
        CHECK(means[l - 1] == Approx(serial(rows, 3, l)).epsilon(1e-5));
      }
      CHECK(means.back() == Approx(serial(rows, 3, means.size())).epsilon(1e-5));
    }
  }
}
