// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/softmax_balance.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::methods;

namespace {

using Signs = std::vector<std::int32_t>;

/// The released rule, computed from the counts of both classes at every index.
std::vector<std::pair<std::int32_t, float>> literal_released(const Signs& signs) {
  const int n = static_cast<int>(signs.size()), m = n / 2;
  const auto reaches = [&](int sign) {
    for (int i = 0, count = 0; i < n; ++i) {
      count += signs[static_cast<std::size_t>(i)] == sign;
      if (count == m) return i;
    }
    return 0;
  };
  const int c = std::max(reaches(-1), reaches(1));
  std::vector<std::pair<std::int32_t, float>> weighted;
  for (int i = 0; i < n; ++i) {
    const bool dropped = signs[static_cast<std::size_t>(i)] == signs[static_cast<std::size_t>(c)];
    weighted.emplace_back(i, i > c ? 1.0f : dropped ? -2.0f : 2.0f);
  }
  std::stable_sort(weighted.begin(), weighted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  weighted.resize(static_cast<std::size_t>(m));
  return weighted;
}

}  // namespace

TEST_CASE("constants: natural logarithms, the tokens of the call") {
  CHECK(parse_walk_constant("p", "paper").of(256, 1.0 / 256) == doctest::Approx(332.71));   // 30 ln 65536
  CHECK(parse_walk_constant("p", "tight").of(256, 1.0 / 256) == doctest::Approx(12.2835));  // 1/2 + ln 131072
  CHECK(parse_walk_constant("p", "2.5").of(256, 0.1) == 2.5);
  for (const char* wrong : {"", "fast", "-1", "0", "1x", "nan", "inf"}) {
    CHECK_THROWS_WITH_AS(parse_walk_constant("balancekv.constants", wrong), doctest::Contains("balancekv.constants"),
                         Error);
  }
}

TEST_CASE("the smaller class of each block is kept, of equal classes +1") {
  //            + - - | + + - - | - | + + -
  const Signs signs = {1, -1, -1, 1, 1, -1, -1, -1, 1, 1, -1};
  CHECK(smaller_halves(signs, {0, 3, 7, 8, 11}) == std::vector<std::int32_t>{0, 3, 4, 10});
}

TEST_CASE("the released half, worked by hand") {
  const auto check = [](const Signs& signs, const std::vector<std::int32_t>& places,
                        const std::vector<float>& weights) {
    const KeptPlaces half = released_half(signs);
    CHECK(half.places == places);
    CHECK(half.factors == weights);
  };
  // m = 4: -1 reaches m at index 5, +1 at index 7 = c, so all +1 are dropped and the -1 have factor 2.
  check({1, -1, -1, 1, -1, -1, 1, 1}, {1, 2, 4, 5}, {2, 2, 2, 2});
  // m = 3: +1 reaches m at 3 = c, -1 never: +1 is dropped up to 3, -1 has factor 2, the rest factor 1.
  check({1, -1, 1, 1, 1, 1}, {1, 4, 5}, {2, 1, 1});
  // m = 2: +1 at index 1 = c; there is no -1 up to c, and two of the three tokens after it are kept.
  check({1, 1, 1, 1, -1}, {2, 3}, {1, 1});
  check({1, -1}, {0}, {2});
  check({1, 1}, {1}, {1});
  check({1}, {}, {});
  check({}, {}, {});
}

TEST_CASE("the released half keeps exactly floor(n / 2) indices, whose factors sum to at most n") {
  for (int n = 1; n <= 11; ++n) {
    for (int bits = 0; bits < 1 << n; ++bits) {
      Signs signs;
      for (int i = 0; i < n; ++i) signs.push_back((bits >> i & 1) != 0 ? 1 : -1);
      const KeptPlaces half = released_half(signs);
      REQUIRE(std::ssize(half.places) == n / 2);
      REQUIRE(std::set(half.places.begin(), half.places.end()).size() == half.places.size());
      REQUIRE(std::accumulate(half.factors.begin(), half.factors.end(), 0.0f) <= static_cast<float>(n));
      const auto literal = literal_released(signs);
      for (std::size_t i = 0; i < literal.size(); ++i) {
        REQUIRE(half.places[i] == literal[i].first);
        REQUIRE(half.factors[i] == literal[i].second);
      }
    }
  }
}

TEST_CASE("a budget gives the smallest number of rounds that fits, and a window of the rest") {
  const auto plan = [](Index n, Index budget, Index rounds = -1) {
    const HalvingPlan p = plan_halving("m", n, budget, rounds, left_of_halves);
    return std::pair(p.rounds, p.recent);
  };
  CHECK(plan(6, 6) == std::pair<Index, Index>(0, 0));
  CHECK(plan(6, 5) == std::pair<Index, Index>(1, 4));  // 4 + 2/2
  CHECK(plan(6, 4) == std::pair<Index, Index>(1, 2));  // 2 + 4/2
  CHECK(plan(6, 3) == std::pair<Index, Index>(1, 0));
  CHECK(plan(6, 2) == std::pair<Index, Index>(2, 1));  // 1 + 5/4
  CHECK(plan(6, 1) == std::pair<Index, Index>(2, 0));  // 6/4
  CHECK(plan(3840, 960) == std::pair<Index, Index>(2, 0));
  CHECK(plan(0, 1) == std::pair<Index, Index>(0, 0));
  CHECK(plan(6, 3, 2) == std::pair<Index, Index>(2, 2));  // 2 + 4/4
  CHECK_THROWS_WITH_AS(plan(6, 2, 1), doctest::Contains("3 of 6 tokens after 1 rounds"), Infeasible);

  // Pairs: 7 = 3 pairs and one token, 3 = 1 pair and one token.
  CHECK(left_of_pairs(7, 2) == 3);
  CHECK(left_of_pairs(8, 2) == 2);
  CHECK_THROWS_AS(plan_halving("m", 7, 1, -1, left_of_pairs), Infeasible);
}
