// SPDX-License-Identifier: Apache-2.0
#include <kvbench/evidence/standing.hpp>

#include <cmath>

#include <doctest/doctest.h>

using namespace kvbench::evidence;
using doctest::Approx;

namespace {

Mark mark(std::string name, double mean, std::optional<bool> tied, double ratio = NAN) {
  return {.name = std::move(name), .mean = mean, .ratio = ratio, .tied = tied, .tested_over = tied ? "8 blocks" : ""};
}

std::string names(const std::vector<Mark>& marks) {
  std::string out;
  for (const Mark& one : marks) out += one.name;
  return out;
}

}  // namespace

TEST_CASE("lists follow the ratio that was tested") {
  std::vector<Mark> group = {mark("w", 1, false, 1.5), mark("v", 2, false, 1.25), mark("b", 1, true, 1),
                             mark("t", 3, true, 1.75), mark("s", 4, true, 1.125), mark("u", 3, std::nullopt)};
  group.push_back(mark("e", 0.5, std::nullopt));
  group.back().compared = false;
  const Standing s = standing_of(group, 2);
  CHECK(s.best.name == "b");
  CHECK(names(s.tied) == "st");
  CHECK(names(s.worse) == "vw");
  CHECK(names(s.untested) == "u");
  CHECK(names(s.elsewhere) == "e");
  CHECK(s.untested[0].ratio == 3);
  CHECK(s.next()->name == "v");
  CHECK(s.next()->row == 1);
  CHECK(s.compared() == 6);
  CHECK(s.tested() == 4);
  CHECK(s.tested_over() == "8 blocks");
  std::string order;
  for (const Mark* one : s.ranked()) order += one->name;
  CHECK(order == "bsvwtu");
}

TEST_CASE("in a group that nobody compared, the smallest mean is the best and the others are worse") {
  const Standing s = standing_of({mark("x", 3, std::nullopt), mark("y", 1, std::nullopt), mark("z", 2, true)}, {});
  CHECK(s.best.name == "y");
  CHECK(names(s.tied) == "z");
  CHECK(names(s.worse) == "x");
  CHECK(s.worse[0].ratio == 3);
}

TEST_CASE("a mean of 0 has no finite ratio to it") {
  const Standing s = standing_of({mark("x", 0, true), mark("y", 0, true), mark("z", 1, false)}, 0);
  CHECK(s.tied[0].ratio == 1);
  CHECK(std::isinf(s.next()->ratio));
  CHECK(standing_of({mark("x", 1, true)}, 0).next() == nullptr);
}
