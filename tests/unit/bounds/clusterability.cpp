// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/measures/curves.hpp>

#include <cmath>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::bounds;
using doctest::Approx;

namespace {

std::vector<double> curve(const std::vector<float>& points, Index cols, Index max_centres) {
  const auto backend = make_ref_backend();
  const auto rows = static_cast<Index>(points.size()) / cols;
  return clusterability(backend->adopt(std::vector(points), rows, cols), max_centres, *backend);
}

}  // namespace

// Points 0, 10, 4, 7 on a line. Centres in order 0, 10, 4, 7: the farthest point is 10 away from the first, then 4 is 4
// away from {0, 10}, then 7 is 3 away from {0, 10, 4}, then none is left. Mean 5.25, squares of the differences sum to
// 54.75.
TEST_CASE("the covering radius of k centres in units of the spread") {
  const double spread = std::sqrt(54.75 / 4);
  const auto radius = curve({0, 10, 4, 7}, 1, 64);
  REQUIRE(radius.size() == 4);
  CHECK(radius[0] == Approx(10 / spread));
  CHECK(radius[1] == Approx(4 / spread));
  CHECK(radius[2] == Approx(3 / spread));
  CHECK(radius[3] == 0);
}

TEST_CASE("a curve of fewer centres is the beginning of a longer one") {
  const auto all = curve({0, 10, 4, 7}, 1, 4), some = curve({0, 10, 4, 7}, 1, 2);
  CHECK(some == std::vector<double>(all.begin(), all.begin() + 2));
}

// Three tight groups on a triangle: two centres cannot cover them, three can.
TEST_CASE("the radius falls once every cluster has a centre") {
  const auto radius = curve({0, 0, 8, 0, 0, 8, 0.01f, 0, 8, 0.01f, 0, 8.01f}, 2, 64);
  REQUIRE(radius.size() == 6);
  CHECK(radius[1] > 1);
  CHECK(radius[2] < 0.01);
}

TEST_CASE("the curve does not depend on scale and position") {
  const auto a = curve({1, 2, 3, 5, 8, 13, -4, 0}, 2, 64), b = curve({20, 40, 60, 100, 160, 260, -80, 0}, 2, 64),
             c = curve({17, 2, 19, 5, 24, 13, 12, 0}, 2, 64);
  for (std::size_t k = 0; k < a.size(); ++k) {
    CHECK(b[k] == Approx(a[k]));
    CHECK(c[k] == Approx(a[k]));
  }
}

TEST_CASE("equal points, a single point and no point") {
  CHECK(curve({3, 3, 3}, 1, 64) == std::vector<double>{0, 0, 0});
  CHECK(curve({3}, 1, 64) == std::vector<double>{0});
  CHECK(curve({}, 1, 64).empty());
}
