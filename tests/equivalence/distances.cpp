// SPDX-License-Identifier: Apache-2.0
// Choices are compared exactly, on points with whole coordinates: their distances are exact in fp32, ties included.
#include <algorithm>

#include "leader_clusters.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

std::vector<float> distances(Backend& b, const std::vector<float>& points, Index n, const std::vector<float>& centres,
                             Index c, Index d) {
  auto out = b.allocate<float>(n, c);
  b.run(kernels::SquaredDistances<Buffer>{b.adopt(points, n, d), b.adopt(centres, c, d), out});
  return b.read(out);
}

}  // namespace

TEST_CASE("squared distances equal the reference") {
  for (Index n : {0, 1, 5, 6, 7, 49})
    for (Index c : {0, 1, 15, 16, 17, 40})
      for (Index d : {1, 7, 8, 9, 64, 128}) {
        CAPTURE(n);
        CAPTURE(c);
        CAPTURE(d);
        const auto points = Random().normal(n * d);
        const auto centres = Random(7).normal(c * d);
        const auto expected = distances(*make_ref_backend(), points, n, centres, c, d);
        for_each_backend(
            [&](Backend& b) { check_equivalent(distances(b, points, n, centres, c, d), expected, "distances"); });
      }
}

TEST_CASE("k-center equals the reference, ties and duplicates included") {
  for (Index n : {Index{1}, Index{2}, Index{15}, Index{16}, Index{63}, Index{64}, Index{65}, sized(300, 33)})
    for (Index d : {1, 3, 16, 33}) {
      if (steps_are_slow() && d % 2 == (n > 16 ? 0 : 1)) continue;  // half of them
      CAPTURE(n);
      CAPTURE(d);
      const auto points = Random().lattice(n * d, 4);
      for (Index k : {Index{0}, Index{1}, n / 2, n}) {
        const Centers expected = k_center(*make_ref_backend(), points, n, d, k, n / 2);
        for_each_backend([&](Backend& b) {
          const Centers actual = k_center(b, points, n, d, k, n / 2);
          check_equivalent(actual.order, expected.order, "order");
          check_equivalent(actual.radius2, expected.radius2, "radius2");
        });
      }
    }
}

TEST_CASE("leader clusters equal the reference, ties and overflow included") {
  for (Index n : {Index{0}, Index{1}, sized(40, 8), sized(700, 80)})
    for (Index d : {1, 5, 16})
      for (float radius : {0.0f, 3.0f, 8.0f, 1000.0f}) {
        bool fitted = false;
        for (Index capacity : {0, 1, 16, 50, 800}) {
          if (fitted && steps_are_slow()) break;  // on a device, a larger capacity changes no step
          CAPTURE(n);
          CAPTURE(d);
          CAPTURE(radius);
          CAPTURE(capacity);
          const auto points = Random().lattice(n * d, 5);
          const Clusters expected = clusters(*make_ref_backend(), points, n, d, radius, capacity, n + 1);
          fitted = expected.count <= capacity;
          for_each_backend([&](Backend& b) {
            const Clusters actual = clusters(b, points, n, d, radius, capacity, n + 1);
            check_equivalent(actual.labels, expected.labels, "labels");
            CHECK(actual.count == expected.count);
            CHECK(same_bits(actual.representatives, expected.representatives));
            for (const Index block : {n + 1, Index{77}}) {
              if (block == 77 && n <= block) continue;  // one call, as before
              const Clusters counted = clusters(b, points, n, d, radius, capacity, block, false);
              CHECK(counted.count == expected.count);
              CHECK(same_bits(counted.representatives, expected.representatives));
            }
          });
        }
      }
}

TEST_CASE("leader clusters: the same bits however the stream is split into calls") {
  const Index n = sized(900, 250);
  const Index d = 24;
  const auto points = Random().normal(n * d);
  for_each_backend([&](Backend& b) {
    const Clusters whole = clusters(b, points, n, d, 5.2f, n, n);
    CHECK(whole.count > 20);
    CHECK(whole.count < n / 2);
    for (const Index capacity : {n, Index{whole.count}, Index{whole.count - 1}}) {
      const Clusters counted = clusters(b, points, n, d, 5.2f, capacity, n, false);
      CHECK(counted.count == whole.count);  // or one more than the capacity
      const std::vector<float> first(whole.representatives.begin(),
                                     whole.representatives.begin() + std::min<Index>(capacity, whole.count) * d);
      CHECK(same_bits(counted.representatives, first));
    }
    for (Index block : {1, 7, 192, 256, 500}) {
      if (steps_are_slow() && block > n) continue;
      CAPTURE(block);
      const Clusters split = clusters(b, points, n, d, 5.2f, n, block);
      CHECK(split.labels == whole.labels);
      CHECK(same_bits(split.representatives, whole.representatives));
    }
  });
}

TEST_CASE("the same pair has the same distance bits in squared distances, k-center and leader clusters") {
  const Index n = 50;
  const Index d = 37;
  const auto points = Random().normal(n * d);
  for_each_backend([&](Backend& b) {
    const auto all = distances(b, points, n, points, n, d);
    const auto distance = [&](Index i, Index j) { return all[static_cast<std::size_t>(i * n + j)]; };
    const Centers centers = k_center(b, points, n, d, n, 0);
    for (std::size_t k = 1; k < centers.order.size(); ++k) {
      float nearest = kInfinity;
      for (std::size_t e = 0; e < k; ++e) nearest = std::min(nearest, distance(centers.order[k], centers.order[e]));
      CHECK(nearest == centers.radius2[k]);
    }
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) CHECK(distance(i, j) == distance(j, i));
    // A radius at a distance exactly: the second point joins; one step below: it opens a cluster.
    const std::vector<float> pair(points.begin(), points.begin() + 2 * d);
    const float radius = std::sqrt(distance(0, 1));
    for (const float r : {radius, std::nextafter(radius, 0.0f), std::nextafter(radius, kInfinity)}) {
      const bool joins = static_cast<double>(distance(0, 1)) <= static_cast<double>(r) * static_cast<double>(r);
      CHECK(clusters(b, pair, 2, d, r, 2, 2).labels[1] == (joins ? 0 : 1));
      CHECK(clusters(b, pair, 2, d, r, 2, 2, false).count == (joins ? 1 : 2));
    }
  });
}
