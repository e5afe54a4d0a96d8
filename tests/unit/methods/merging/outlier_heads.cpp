// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/outlier_heads.hpp>

#include <doctest/doctest.h>

#include <support/text_file.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("a file of outlier heads has one layer and kv head per line") {
  const TextFile file("# calibrated\n4 1\n\n 0 0  # first layer\n4 0\n");
  CHECK(read_outlier_heads(file.path()) == std::vector<OutlierHead>{{0, 0}, {4, 0}, {4, 1}});
}

TEST_CASE("a fault in a file of outlier heads is reported with its line") {
  const auto reject = [](const std::string& text, const std::string& fault) {
    const TextFile file(text);
    CHECK_THROWS_WITH_AS(read_outlier_heads(file.path()), doctest::Contains((file.path() + fault).c_str()), Error);
  };
  reject("1 2\n3\n", ":2: ");
  reject("1 x\n", ":1: ");
  reject("1 2 3\n", ":1: ");
  reject("-1 2\n", ":1: ");
  reject("1 2\n0 1\n1 2\n", ":3: layer 1, kv head 2 is listed twice");
  reject("# nothing\n", " names no outlier head");
  CHECK_THROWS_WITH_AS(read_outlier_heads("/nonexistent/heads.txt"), doctest::Contains("there is no such file"), Error);
}

// Five A slots, one of them alone in its chunk: three links above .8 leave 2/5 unlinked. A link at the threshold does
// not count.
TEST_CASE("A tokens without a link above the threshold are unlinked, those without any partner too") {
  const std::vector<MergeLink> links = {{0, 1, 0.9f}, {2, 1, 0.95f}, {4, 5, 0.5f}, {6, 5, 0.85f}};
  const LinkQuality quality = link_quality(links, 5, 0.8);
  CHECK(quality.unlinked == doctest::Approx(2 / 5.0));
  CHECK(quality.mean == doctest::Approx(0.8));
  CHECK(link_quality(links, 5, 0.5).unlinked == doctest::Approx(2 / 5.0));
  CHECK(link_quality({}, 1, 0.5).unlinked == 1);
  CHECK(link_quality({}, 0, 0.5).unlinked == 0);
}

TEST_CASE("the number of outlier heads is rounded up, with a tolerance for rounding errors") {
  const auto count = [](double ratio, std::size_t heads) {
    return worst_linked(std::vector<LinkQuality>(heads), ratio).size();
  };
  CHECK(count(0.04, 3) == 1);
  CHECK(count(0.04, 25) == 1);
  CHECK(count(0.04, 26) == 2);
  CHECK(0.07 * 100 > 7);  // because of rounding
  CHECK(count(0.07, 100) == 7);
  CHECK(count(0, 8) == 0);
  CHECK(count(1, 8) == 8);
}

TEST_CASE("the least linked heads are outliers, ties by the mean similarity, then by number") {
  const std::vector<LinkQuality> heads = {{0.5, 0.9}, {0.7, 0.8}, {0.5, 0.6}, {0.1, 0.2}, {0.5, 0.6}};
  CHECK(worst_linked(heads, 0.2) == std::vector<Index>{1});
  CHECK(worst_linked(heads, 0.4) == std::vector<Index>{1, 2});
  CHECK(worst_linked(heads, 0.6) == std::vector<Index>{1, 2, 4});
}

TEST_CASE("heads kept whole lower the budget of the other heads") {
  CHECK(budget_beside_outliers(10, 4, 1, 16) == 8);  // (40 - 16) / 3
  CHECK(budget_beside_outliers(10, 4, 1, 15) == 8);  // 8.33
  CHECK(budget_beside_outliers(10, 4, 0, 16) == 10);
  CHECK(budget_beside_outliers(16, 4, 1, 16) == 16);  // all fit
  CHECK(budget_beside_outliers(20, 4, 4, 16) == 20);
  CHECK(budget_beside_outliers(4, 3, 1, 8) == 2);
  CHECK(budget_beside_outliers(6, 3, 2, 8) == 2);
  CHECK_THROWS_WITH_AS(
      budget_beside_outliers(3, 3, 1, 8),
      "1 of 3 kv heads kept whole need 8 of the 9 tokens that a budget of 3 gives all heads, which leaves less than "
      "one token per other head; use chelsea.outliers=none, fewer outlier heads, or a budget of at least 4",
      Infeasible);
  CHECK_THROWS_AS(budget_beside_outliers(7, 2, 2, 8), Infeasible);
}
