// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/lloyd.hpp>

using namespace kvbench;

namespace {

using Labels = std::vector<std::int32_t>;

/// Points of two dimensions.
Clustering run(std::vector<float> points, const std::vector<TokenId>& start, const LloydOptions& options, Backend& backend) {
  const auto count = static_cast<Index>(points.size()) / 2;
  return lloyd(backend.adopt(std::move(points), count, 2), start, options, backend);
}

void check_centroids(const Clustering& found, const std::vector<double>& expected, Backend& backend) {
  const std::vector<float> centroids = backend.read(found.centroids);
  REQUIRE(centroids.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(centroids[i] == doctest::Approx(expected[i]));
}

}  // namespace

// Centroids a = (1, 0), b = (0, 4). Point 2 = (3, 1): cosine .95 to a, .32 to b; distance^2 5 and 18; product 3 and 4.
// Point 3 = (1, 1.2): cosine .64 and .77; distance^2 1.44 and 8.84; product 1 and 4.8.
TEST_CASE("the distance decides which centroid is the nearest, means are those of the points as they are") {
  const auto backend = make_ref_backend();
  const std::vector<float> points = {1, 0, 0, 4, 3, 1, 1, 1.2f};
  const auto once = [&](Distance distance) { return run(points, {0, 1}, {.distance = distance, .iterations = 1}, *backend); };
  CHECK(once(Distance::cosine).labels == Labels{0, 1, 0, 1});
  check_centroids(once(Distance::cosine), {2, .5, .5, 2.6}, *backend);
  CHECK(once(Distance::l2).labels == Labels{0, 1, 0, 0});
  check_centroids(once(Distance::l2), {5.0 / 3, 2.2 / 3, 0, 4}, *backend);
  CHECK(once(Distance::ip).labels == Labels{0, 1, 1, 1});
  check_centroids(once(Distance::ip), {1, 0, 4.0 / 3, 6.2 / 3}, *backend);
}

// Points 0, 1, 9, 10 on a line, from 0 and 1: {0} {1 9 10}, then with centroids 0 and 20/3 {0 1} {9 10}, then fixed.
TEST_CASE("the loop ends where no label changes, or at its cap") {
  const auto backend = make_ref_backend();
  const std::vector<float> points = {0, 0, 1, 0, 9, 0, 10, 0};
  const LloydOptions l2{.distance = Distance::l2};
  const Clustering whole = run(points, {0, 1}, l2, *backend);
  CHECK(whole.fixed);
  CHECK(whole.iterations == 2);
  CHECK(whole.labels == Labels{0, 0, 1, 1});
  check_centroids(whole, {.5, 0, 9.5, 0}, *backend);

  const Clustering once = run(points, {0, 1}, {.distance = Distance::l2, .iterations = 1}, *backend);
  CHECK_FALSE(once.fixed);
  CHECK(once.labels == Labels{0, 1, 1, 1});
  check_centroids(once, {0, 0, 20.0 / 3, 0}, *backend);

  // Once more to the last centroids, which stay.
  const Clustering again = run(points, {0, 1}, {.distance = Distance::l2, .iterations = 1, .relabel = true}, *backend);
  CHECK_FALSE(again.fixed);
  CHECK(again.labels == Labels{0, 0, 1, 1});
  check_centroids(again, {0, 0, 20.0 / 3, 0}, *backend);
  CHECK(run(points, {0, 1}, {.distance = Distance::l2, .iterations = 2, .relabel = true}, *backend).fixed);
}

// All points have one direction, so that all cosines are 1: ties go to cluster 0, and cluster 1 stays where it started.
TEST_CASE("an empty cluster keeps its centroid") {
  const auto backend = make_ref_backend();
  const Clustering found = run({1, 0, 2, 0, 6, 0}, {0, 1}, {}, *backend);
  CHECK(found.fixed);
  CHECK(found.labels == Labels{0, 0, 0});
  check_centroids(found, {3, 0, 2, 0}, *backend);
}

// Cluster 0 takes all four at first, and its mean (1, 1) leaves the direction (1, 0) to the empty cluster.
TEST_CASE("an empty cluster may win points later") {
  const auto backend = make_ref_backend();
  const Clustering found = run({1, 0, 3, 0, 0, 1, 0, 3}, {0, 1}, {}, *backend);
  CHECK(found.labels == Labels{1, 1, 0, 0});
  check_centroids(found, {0, 2, 2, 0}, *backend);
}

TEST_CASE("zero vectors and no clusters at all") {
  const auto backend = make_ref_backend();
  for (const Distance distance : {Distance::cosine, Distance::l2, Distance::ip}) {
    const Clustering zeros = run({0, 0, 0, 0, 0, 0}, {0, 2}, {.distance = distance}, *backend);
    CHECK(zeros.labels == Labels{0, 0, 0});
    CHECK(zeros.fixed);
    check_centroids(zeros, {0, 0, 0, 0}, *backend);
  }
  const Clustering none = run({}, {}, {}, *backend);
  CHECK(none.labels.empty());
  CHECK(none.fixed);
}
