// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>
#include <kvbench/measures/curves.hpp>
#include <kvbench/measures/measures.hpp>
#include <kvbench/replay/plan/selection.hpp>
#include <kvbench/replay/run/devices.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::measures;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

const std::vector<Measure> both = {Measure::clusterability, Measure::similarity_by_distance};

std::vector<double> curve_of(const std::vector<MeasureRow>& rows, std::int64_t layer, Index head, Measure measure,
                             const std::string& array) {
  std::vector<double> values;
  for (const MeasureRow& r : rows) {
    if (r.layer != layer || r.kv_head != head || r.measure != measure || r.array != array) continue;
    CHECK(r.x == static_cast<Index>(values.size()) + 1);
    values.push_back(r.value);
  }
  return values;
}

/// Measures of all heads of the small trace, in order.
std::vector<MeasureRow> measure_all(const SmallTrace& trace, const std::string& device) {
  const auto backend = make_backend({.backend = device});
  std::vector<MeasureRow> rows;
  for (const HeadPlace& place : select_heads(trace.reader().info(), {})) {
    const auto part = measure_head(trace.reader(), place, both, *backend);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

}  // namespace

TEST_CASE("every head has a curve of each measure") {
  const SmallTrace trace;
  const auto rows = measure_all(trace, "ref");
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (Index head = 0; head < 2; ++head) {
      const Arrays arrays(trace.reader(), layer, head);
      const auto keys = ref().adopt(std::vector(arrays.keys), 40, 8),
                 values = ref().adopt(std::vector(arrays.values), 40, 6);
      const auto l = static_cast<std::int64_t>(layer);
      CHECK(curve_of(rows, l, head, Measure::clusterability, "keys") == clusterability(keys, 64, ref()));
      CHECK(curve_of(rows, l, head, Measure::clusterability, "values") == clusterability(values, 64, ref()));
      CHECK(curve_of(rows, l, head, Measure::clusterability, "both").size() == 40);
      CHECK(curve_of(rows, l, head, Measure::similarity_by_distance, "keys") ==
            similarity_by_distance(keys, 255, ref()));
    }
  }
  CHECK(rows.size() == 4 * (3 * 40 + 39));
  CHECK(rows.front().count == 40);
  CHECK(rows.back().count == 1);  // one pair of tokens is 39 apart
}

TEST_CASE("rows identify their head and measure") {
  const SmallTrace trace;
  const auto rows = measure_head(trace.reader(), {0, 1, 1}, {Measure::similarity_by_distance}, cpu());
  CHECK(rows.size() == 39);
  CHECK(std::ranges::all_of(rows, [](const MeasureRow& r) { return r.layer == 1 && r.kv_head == 1; }));
  CHECK(rows.front().trace == "small.h5");
  CHECK(rows.front().sha256 == trace.reader().sha256().substr(0, 12));
}

TEST_CASE("an interruption stops the measures") {
  const SmallTrace trace;
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(measure_head(trace.reader(), {0, 0, 0}, both, cpu(), &stop), Interrupted);
}

namespace {

std::vector<double> curve(const std::vector<float>& points, Index cols, Index max_centres) {
  const auto rows = static_cast<Index>(points.size()) / cols;
  return clusterability(ref().adopt(std::vector(points), rows, cols), max_centres, ref());
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

namespace {

std::vector<double> curve(Backend& backend, const std::vector<float>& rows, Index cols, Index max_distance) {
  const auto n = static_cast<Index>(rows.size()) / cols;
  return similarity_by_distance(backend.adopt(std::vector(rows), n, cols), max_distance, backend);
}

/// Mean cosine of the pairs that are `distance` apart, term by term.
double cosine_at(const std::vector<float>& rows, std::size_t cols, std::size_t distance) {
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
  const double s = std::sqrt(0.5);
  const auto means = curve(ref(), {1, 0, 0, 2, 3, 0, 5, 5}, 2, 255);
  REQUIRE(means.size() == 3);
  CHECK(means[0] == Approx(s / 3));
  CHECK(means[1] == Approx((1 + s) / 2));
  CHECK(means[2] == Approx(s));
}

TEST_CASE("a row of zeros has similarity 0") { CHECK(curve(ref(), {1, 0, 1}, 1, 255) == std::vector<double>{0, 1}); }

TEST_CASE("no pairs, no curve") {
  CHECK(curve(ref(), {1, 0}, 2, 255).empty());
  CHECK(curve(ref(), {}, 2, 255).empty());
}

// Sizes around the block size of the products.
TEST_CASE("blocks count every pair once") {
  for (const std::size_t n : {255u, 256u, 257u, 258u, 511u, 513u, 700u}) {
    for (const Index distances : {1, 3, 255, 600}) {
      CAPTURE(n);
      CAPTURE(distances);
      const std::vector<float> rows = noise(n * 3);
      const auto means = curve(cpu(), rows, 3, distances);
      REQUIRE(static_cast<Index>(means.size()) == std::min(distances, static_cast<Index>(n) - 1));
      for (std::size_t l = 1; l <= means.size(); l += l < 4 ? 1 : 37) {
        CHECK(means[l - 1] == Approx(cosine_at(rows, 3, l)).epsilon(1e-5));
      }
      CHECK(means.back() == Approx(cosine_at(rows, 3, means.size())).epsilon(1e-5));
    }
  }
}
