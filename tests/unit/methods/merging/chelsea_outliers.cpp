// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Three heads of 24 tokens; the keys of heads 0 and 2 are similar, those of head 1 are not.
std::vector<HeadData> layer(Backend& backend) {
  std::vector<HeadData> heads;
  for (std::uint32_t h = 0; h < 3; ++h) {
    heads.push_back(random_head({.n = 24, .decoded = 6, .d = 4, .dv = 2, .group = 1}, h, backend));
    if (h == 1) continue;
    for (float& x : heads.back().keys) x = 4 + 0.25f * x;
  }
  return heads;
}

std::vector<std::size_t> sizes(Session& session, const std::vector<HeadData>& heads, Backend& backend) {
  const auto tables = session.entries(std::vector<QueryBlock>(heads.size()));
  std::vector<std::size_t> counts;
  for (std::size_t h = 0; h < heads.size(); ++h) counts.push_back(held(tables[h], heads[h], backend).size());
  return counts;
}
std::vector<std::size_t> sizes_of(Session session, const std::vector<HeadData>& heads, Backend& backend) {
  return sizes(session, heads, backend);
}

}  // namespace

// B' = (16 * 3 - 24) / 2 = 12.
TEST_CASE("chelsea: outliers=auto keeps the least linked head whole and lowers the budget of the others") {
  const auto backend = make_ref_backend();
  const auto heads = layer(*backend);
  CHECK(sizes_of(open_layer("chelsea", {}, heads, 16, *backend), heads, *backend) ==
        std::vector<std::size_t>{16, 16, 16});
  auto session = open_layer("chelsea", {{"outliers", "auto"}}, heads, 16, *backend);
  CHECK(sizes(session, heads, *backend) == std::vector<std::size_t>{12, 24, 12});
  REQUIRE(session.notes().size() == 1);
  CHECK(session.notes()[0].count == 1);
  CHECK(session.footprint()[1][0].rows == 24);
  CHECK(session.footprint()[0][0].rows == 12);
  CHECK_THROWS_AS(open_layer("chelsea", {{"outliers", "auto"}}, heads, 8, *backend), Infeasible);
}

// Merging heads go to 12 - (12 - 3 - 6) / 2 = 11 with the first token; the head kept whole could take all six at once.
TEST_CASE("chelsea: a layer takes as many tokens as the head that takes the fewest") {
  const auto backend = make_ref_backend();
  const auto heads = layer(*backend);
  auto session = open_layer("chelsea", {{"outliers", "auto"}}, heads, 16, *backend);
  const auto append = [&](Index begin) {
    std::vector<TokenBlock> blocks;
    for (const HeadData& head : heads) blocks.push_back(token_block(head, begin, 30, *backend));
    return session.append(blocks);
  };
  CHECK(append(24) == 1);
  CHECK(sizes(session, heads, *backend) == std::vector<std::size_t>{11, 25, 11});
  CHECK(append(25) == 1);
  CHECK(append(26) == 1);
  CHECK(sizes(session, heads, *backend) == std::vector<std::size_t>{11, 27, 11});
}

// Four layers (prompt_of) of three heads, of which two are kept whole; these are the heads of layer 1:
// B' = (16 * 12 - 2 * 24) / 10 = 14.
TEST_CASE("chelsea: outliers=FILE counts the heads of the whole model") {
  const auto backend = make_ref_backend();
  const auto heads = layer(*backend);
  const auto path = std::filesystem::temp_directory_path() / "kvbench-chelsea-outliers.txt";
  const auto write = [&](const char* text) { std::ofstream(path) << text; };
  const std::vector<Assignment> settings = {{"outliers", path.string()}};
  write("1 2\n3 0\n");
  CHECK(sizes_of(open_layer("chelsea", settings, heads, 16, *backend), heads, *backend) ==
        std::vector<std::size_t>{14, 14, 24});
  write("2 2\n3 0\n");
  auto none_here = open_layer("chelsea", settings, heads, 16, *backend);
  CHECK(sizes(none_here, heads, *backend) == std::vector<std::size_t>{14, 14, 14});
  CHECK(none_here.notes().size() == 1);  // the budget is that of the model
  write("1 3\n");
  CHECK_THROWS_WITH_AS(open_layer("chelsea", settings, heads, 16, *backend),
                       doctest::Contains("4 layers of 3 kv heads, and no layer 1 with kv head 3"), Error);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH_AS(find_method("chelsea").bind(settings), doctest::Contains("there is no such file"), Error);
}

TEST_CASE("chelsea: a stream has no context that outlier heads could keep") {
  const auto backend = make_ref_backend();
  const HeadData empty = random_head({.n = 0, .decoded = 8}, 1, *backend);
  CHECK_NOTHROW(open_layer("chelsea", {}, {empty}, 4, *backend));
  CHECK_THROWS_AS(open_layer("chelsea", {{"outliers", "auto"}}, {empty}, 4, *backend), Unavailable);
}
