// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("squared distances") {
  auto out = ref().allocate<float>(2, 2);

  ref().run(kernels::SquaredDistances<Buffer>{matrix<float>(ref(), {{0, 0}, {3, 4}}),
                                              matrix<float>(ref(), {{3, 4}, {-1, 1}}), out});

  CHECK(ref().read(out) == std::vector<float>{25, 2, 0, 25});
}

TEST_CASE("k-center selects the farthest point, the lowest index on ties, each point once") {
  const auto points = matrix<float>(ref(), {{0}, {10}, {-10}, {0}, {4}});
  auto order = ref().allocate<std::int32_t>(5);
  auto radius2 = ref().allocate<float>(5);

  ref().run(kernels::KCenter<Buffer>{points, 3, order, radius2});

  CHECK(ref().read(order) == std::vector<std::int32_t>{3, 1, 2, 4, 0});
  CHECK(ref().read(radius2) == std::vector<float>{kInfinity, 100, 100, 16, 0});
}

TEST_CASE("leader clusters: join the nearest representative within the radius, else open a cluster") {
  auto representatives = ref().allocate<float>(3, 1);
  auto count = column<std::int32_t>(ref(), {0});
  auto labels = ref().allocate<std::int32_t>(6);

  // 2 lies within 2 of 0; 4 opens a cluster; 2 is as far from 0 as from 4: the lower cluster; 5 joins 4; 7 opens the
  // third
  ref().run(kernels::LeaderClusters<Buffer>{matrix<float>(ref(), {{0}, {2}, {4}, {2}, {5}, {7}}), 2, representatives,
                                            count, labels});

  CHECK(ref().read(labels) == std::vector<std::int32_t>{0, 0, 1, 0, 1, 2});
  CHECK(ref().read(count)[0] == 3);
  CHECK(ref().read(representatives) == std::vector<float>{0, 4, 7});

  ref().fill(count, 0);
  ref().run(
      kernels::LeaderClusters<Buffer>{matrix<float>(ref(), {{0}, {2}, {4}, {2}, {5}, {7}}), 2, representatives, count});
  CHECK(ref().read(count)[0] == 3);  // without labels
}

TEST_CASE("leader clusters: labels are -1 from the point on that did not fit, also in later calls") {
  auto representatives = ref().allocate<float>(2, 1);
  auto count = column<std::int32_t>(ref(), {0});
  auto labels = ref().allocate<std::int32_t>(4);

  ref().run(
      kernels::LeaderClusters<Buffer>{matrix<float>(ref(), {{0}, {5}, {10}, {0}}), 1, representatives, count, labels});
  CHECK(ref().read(labels) == std::vector<std::int32_t>{0, 1, -1, -1});
  CHECK(ref().read(count)[0] == 3);

  auto later = ref().allocate<std::int32_t>(1);
  ref().run(kernels::LeaderClusters<Buffer>{matrix<float>(ref(), {{0}}), 1, representatives, count, later});
  CHECK(ref().read(later) == std::vector<std::int32_t>{-1});
}
