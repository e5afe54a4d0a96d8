// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

#include <kvbench/allocate/solve.hpp>

using namespace kvbench::allocate;

namespace {

// Layer 0 has damages 10, 4, 1 at costs 1, 2, 4; layer 1 has 3, 2, 0.
const Choices two_layers{2, 3, {10, 4, 1, 3, 2, 0}, {1, 2, 4, 1, 2, 4}};

/// The least damage of all plans that cost at most `budget`, by trying each.
double least_damage(const Choices& choices, std::int64_t budget) {
  double least = std::numeric_limits<double>::infinity();
  Plan plan(choices.layers, 0);
  for (;;) {
    if (cost_of(choices, plan) <= budget) least = std::min(least, damage_of(choices, plan));
    std::size_t l = 0;
    while (l < plan.size() && ++plan[l] == choices.entries) plan[l++] = 0;
    if (l == plan.size()) return least;
  }
}

}  // namespace

TEST_CASE("the plan of two layers and three entries is the best one at every budget") {
  // By hand, damages: at 4, (4, 2) has 6 and (4, 3) 7; at 5, (1, 3) has 4; at 6, (1, 2) has 3 and (4, 0) 4; at 8 all.
  CHECK_FALSE(solve(two_layers, 1));
  CHECK(solve(two_layers, 2) == Plan{0, 0});
  CHECK(solve(two_layers, 3) == Plan{1, 0});
  CHECK(solve(two_layers, 4) == Plan{1, 1});
  CHECK(solve(two_layers, 5) == Plan{2, 0});
  CHECK(solve(two_layers, 6) == Plan{2, 1});
  CHECK(solve(two_layers, 7) == Plan{2, 1});
  CHECK(solve(two_layers, 8) == Plan{2, 2});
  CHECK(solve(two_layers, 1000) == Plan{2, 2});
}

TEST_CASE("a layer gets no entry that it cannot have") {
  Choices choices = two_layers;
  choices.cost[1] = -1;  // layer 0, entry 1
  CHECK(solve(choices, 4) == Plan{0, 1});
  CHECK(solve(choices, 5) == Plan{2, 0});
  for (std::size_t e = 0; e < 3; ++e) choices.cost[e] = -1;
  CHECK_FALSE(solve(choices, 1000));
}

TEST_CASE("a menu of one entry gives the plan that has it in all layers") {
  const Choices one{3, 1, {1, 2, 3}, {5, 5, 5}};
  CHECK_FALSE(solve(one, 14));
  CHECK(solve(one, 15) == Plan{0, 0, 0});
  CHECK(best_equal(one, 15) == 0);
  CHECK_FALSE(best_equal(one, 14));
}

TEST_CASE("of equal damages the cheaper entry counts, so that no bytes are spent for nothing") {
  CHECK(solve({1, 3, {2, 2, 2}, {3, 1, 2}}, 10) == Plan{1});
  CHECK(solve({2, 2, {0, 0, 0, 0}, {4, 1, 4, 1}}, 10) == Plan{1, 1});
}

TEST_CASE("a random menu is solved to within one exchange of the best plan") {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int64_t> cost(1, 30);
  std::exponential_distribution<double> damage(1);
  std::size_t exact = 0, cases = 0;
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    Choices choices{4, 5, {}, {}};
    for (std::size_t i = 0; i < choices.layers * choices.entries; ++i) {
      choices.damage.push_back(damage(random));
      choices.cost.push_back(cost(random));
    }
    const std::int64_t exchange =
        std::ranges::max(choices.cost) - std::ranges::min(choices.cost);  // no exchange in a layer costs more
    for (const std::int64_t budget : {20, 40, 60, 100}) {
      const auto plan = solve(choices, budget);
      const double best = least_damage(choices, budget);
      REQUIRE(plan.has_value() == std::isfinite(best));
      if (!plan) continue;
      CHECK(cost_of(choices, *plan) <= budget);
      CHECK(damage_of(choices, *plan) >= best - 1e-12);
      CHECK(damage_of(choices, *plan) <= least_damage(choices, budget - exchange) + 1e-12);
      exact += damage_of(choices, *plan) <= best + 1e-12, ++cases;
    }
  }
  CHECK(exact > cases * 3 / 4);
}

TEST_CASE("the best equal entry is one that every layer can have within the budget") {
  CHECK(best_equal(two_layers, 8) == 2);
  CHECK(best_equal(two_layers, 7) == 1);
  CHECK_FALSE(best_equal(two_layers, 1));
  Choices choices = two_layers;
  choices.cost[5] = -1;  // layer 1, entry 2
  CHECK(best_equal(choices, 8) == 1);
}

TEST_CASE("shrinking takes powers of the damages and of their means over layers") {
  // Entry 0 has damages 1 and 9 with mean 5.
  const Choices choices{2, 1, {1, 9}, {1, 1}};
  CHECK(shrunk(choices, 0).damage == std::vector<double>{1, 9});
  CHECK(shrunk(choices, 1).damage[0] == doctest::Approx(5));
  CHECK(shrunk(choices, 1).damage[1] == doctest::Approx(5));
  CHECK(shrunk(choices, 0.5).damage[0] == doctest::Approx(std::sqrt(5.0)));
  CHECK(shrunk(choices, 0.5).damage[1] == doctest::Approx(std::sqrt(45.0)));
}

// Layer 1 cannot have entry 0, whose mean is that of layers 0 and 2, (1 + 9) / 2; all have entry 1: (2 + 4 + 6) / 3.
TEST_CASE("shrinking draws an entry towards its mean over the layers that can have it") {
  const Choices choices{3, 2, {1, 2, 0, 4, 9, 6}, {1, 1, -1, 1, 1, 1}};
  const Choices found = shrunk(choices, 1);
  for (const std::size_t layer : {0, 2}) CHECK(found.damage[found.at(layer, 0)] == doctest::Approx(5));
  for (const std::size_t layer : {0, 1, 2}) CHECK(found.damage[found.at(layer, 1)] == doctest::Approx(4));
  CHECK_FALSE(found.has(1, 0));
}
