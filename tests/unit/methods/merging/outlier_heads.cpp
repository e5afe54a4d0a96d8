// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include <kvbench/methods/merging/outlier_heads.hpp>

#include <support/temp_folder.hpp>

#include "fixtures.hpp"

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

namespace {

/// Three heads of 24 tokens; the keys of heads 0 and 2 are similar, those of head 1 are not.
std::vector<HeadData> layer() {
  std::vector<HeadData> heads;
  for (std::uint32_t h = 0; h < 3; ++h) {
    heads.push_back(random_head({.n = 24, .decoded = 6, .d = 4, .dv = 2, .group = 1}, h, ref()));
    if (h == 1) continue;
    for (float& x : heads.back().keys) x = 4 + 0.25f * x;
  }
  return heads;
}

std::vector<std::size_t> sizes(Session& session, const std::vector<HeadData>& heads) {
  const auto tables = session.entries(std::vector<QueryBlock>(heads.size()));
  std::vector<std::size_t> counts;
  for (std::size_t h = 0; h < heads.size(); ++h) counts.push_back(held(tables[h], heads[h]).size());
  return counts;
}
std::vector<std::size_t> sizes_of(Session session, const std::vector<HeadData>& heads) { return sizes(session, heads); }

}  // namespace

// B' = (16 * 3 - 24) / 2 = 12.
TEST_CASE("chelsea: outliers=auto keeps the least linked head whole and lowers the budget of the others") {
  const auto heads = layer();
  CHECK(sizes_of(open_layer("chelsea", {}, heads, 16), heads) == std::vector<std::size_t>{16, 16, 16});
  auto session = open_layer("chelsea", {{"outliers", "auto"}}, heads, 16);
  CHECK(sizes(session, heads) == std::vector<std::size_t>{12, 24, 12});
  REQUIRE(session.notes().size() == 1);
  CHECK(session.notes()[0].count == 1);
  CHECK(session.footprint()[1][0].rows == 24);
  CHECK(session.footprint()[0][0].rows == 12);
  CHECK_THROWS_AS(open_layer("chelsea", {{"outliers", "auto"}}, heads, 8), Infeasible);
}

// Merging heads go to 12 - (12 - 3 - 6) / 2 = 11 with the first token; the head kept whole could take all six at once.
TEST_CASE("chelsea: a layer takes as many tokens as the head that takes the fewest") {
  const auto heads = layer();
  auto session = open_layer("chelsea", {{"outliers", "auto"}}, heads, 16);
  const auto append = [&](Index begin) {
    std::vector<TokenBlock> blocks;
    for (const HeadData& head : heads) blocks.push_back(token_block(head, begin, 30, ref()));
    return session.append(blocks);
  };
  CHECK(append(24) == 1);
  CHECK(sizes(session, heads) == std::vector<std::size_t>{11, 25, 11});
  CHECK(append(25) == 1);
  CHECK(append(26) == 1);
  CHECK(sizes(session, heads) == std::vector<std::size_t>{11, 27, 11});
}

// Four layers (prompt_of) of three heads, of which two are kept whole; these are the heads of layer 1:
// B' = (16 * 12 - 2 * 24) / 10 = 14.
TEST_CASE("chelsea: outliers=FILE counts the heads of the whole model") {
  const auto heads = layer();
  const auto path = std::filesystem::temp_directory_path() / "kvbench-chelsea-outliers.txt";
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  const std::vector<Assignment> settings = {{"outliers", path.string()}};
  write("1 2\n3 0\n");
  CHECK(sizes_of(open_layer("chelsea", settings, heads, 16), heads) == std::vector<std::size_t>{14, 14, 24});
  write("2 2\n3 0\n");
  auto none_here = open_layer("chelsea", settings, heads, 16);
  CHECK(sizes(none_here, heads) == std::vector<std::size_t>{14, 14, 14});
  CHECK(none_here.notes().size() == 1);  // the budget is that of the model
  write("1 3\n");
  CHECK_THROWS_WITH_AS(open_layer("chelsea", settings, heads, 16),
                       doctest::Contains("4 layers of 3 kv heads, and no layer 1 with kv head 3"), Error);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH_AS(find_method("chelsea").bind(settings), doctest::Contains("there is no such file"), Error);
}

TEST_CASE("chelsea: a stream has no context that outlier heads could keep") {
  const HeadData empty = random_head({.n = 0, .decoded = 8}, 1, ref());
  CHECK_NOTHROW(open_layer("chelsea", {}, {empty}, 4));
  CHECK_THROWS_AS(open_layer("chelsea", {{"outliers", "auto"}}, {empty}, 4), Unavailable);
}
