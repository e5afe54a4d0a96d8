// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/token_weights.hpp>

#include <random>

#include <doctest/doctest.h>

#include <kvbench/methods/contract/method.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using doctest::Approx;

namespace {

using Tokens = std::vector<Index>;
using Weights = std::vector<double>;

/// Tokens 0 and 1 have the value 3 and equal shares, token 2 the value 1. Outputs: 0.5 * 3 + 0.5 = 2, 0.2 * 3 + 0.8.
WeightFit twins() { return {1, {0.25f, 0.25f, 0.5f, 0.1f, 0.1f, 0.8f}, {3, 3, 1}, std::vector<float>{2, 1.4f}}; }

}  // namespace

TEST_CASE("a token stands for its twin with weight 2") {
  const WeightFit fit = twins();
  const Tokens kept = {0, 2};
  // With weight 1: 1.25 / 0.75 = 5/3 instead of 2, and 1.1 / 0.9 = 11/9 instead of 1.4.
  CHECK(fit.mean_error(kept, Weights{1, 1}) == Approx((1.0 / 6 + (1.4 - 11.0 / 9) / 1.4) / 2));
  CHECK(fit.mean_error(kept, Weights{2, 1}) == Approx(0).epsilon(1e-6));
  const Weights weights = fit.weights(kept, Weights{1, 1});
  CHECK(weights[0] == Approx(2).epsilon(0.01));
  CHECK(weights[1] == Approx(1).epsilon(0.01));
  CHECK(fit.mean_error(kept, weights) < 0.005);
}

TEST_CASE("tokens outside the context keep their part of the answer") {
  // Twins of share 0.25 and value 4; half of the attention goes to a value 0 outside. Output 2.
  const WeightFit fit(1, {0.25f, 0.25f}, {4, 4}, std::vector<float>{2});
  CHECK(fit.mean_error(Tokens{0}, Weights{1}) == Approx(1.0 / 3));  // 1 / 0.75 instead of 2
  CHECK(fit.weights(Tokens{0}, Weights{1})[0] == Approx(2).epsilon(0.01));
  CHECK(fit.mean_error(Tokens{}, Weights{}) == Approx(1));
}

TEST_CASE("weights are never negative") {
  // Values -3 and 5 with shares 0.4 and 0.1; the other half has the value 3.4, so that the output is 1. Alone, the
  // value 5 would need a weight below 0.
  const WeightFit fit(1, {0.4f, 0.1f}, {-3, 5}, std::vector<float>{1});
  CHECK(fit.weights(Tokens{1}, Weights{1})[0] == 0);
  CHECK(fit.mean_error(Tokens{1}, Weights{0}) == Approx(2.4));  // 1.7 / 0.5 instead of 1
}

TEST_CASE("own weights remain where no fit is better") {
  const WeightFit fit = twins();
  CHECK(fit.weights(Tokens{0, 1, 2}, Weights{1, 1, 1}) == Weights{1, 1, 1});
}

TEST_CASE("greedy selection takes the token whose answer alone is nearest, then what is missing") {
  // Output 0.6 * 10 + 0.3 * 4 + 0.1 * 8 = 8: the token of the smallest share has this value.
  const WeightFit one(1, {0.6f, 0.3f, 0.1f}, {10, 4, 8}, std::vector<float>{8});
  CHECK(one.greedy(1) == Tokens{2});
  // Two queries with two twins each: one token of each pair is enough.
  const WeightFit pairs(1, {0.5f, 0.5f, 0, 0, 0, 0, 0.5f, 0.5f}, {1, 1, 5, 5}, std::vector<float>{1, 5});
  const Tokens chosen = pairs.greedy(2);
  CHECK(chosen == Tokens{0, 2});
  CHECK(pairs.mean_error(chosen, pairs.weights(chosen, Weights{1, 1})) < 0.005);
}

TEST_CASE("greedy sets have smaller errors than sets of the same size with the most mass, weights fitted to both") {
  std::mt19937 random(7);  // its sequence is fixed by the standard
  const auto number = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
  for (int head = 0; head < 5; ++head) {
    constexpr Index rows = 12, tokens = 40, dv = 4;
    std::vector<float> shares, values, outputs(rows * dv);
    for (Index j = 0; j < tokens * dv; ++j) values.push_back(number());
    std::vector<std::pair<double, Index>> mass(tokens);
    for (Index q = 0; q < rows; ++q) {
      double sum = 0;
      std::vector<double> row;
      for (Index j = 0; j < tokens; ++j) row.push_back(std::exp(3.0 * number())), sum += row.back();
      for (Index j = 0; j < tokens; ++j) {
        const double share = row[static_cast<std::size_t>(j)] / sum;
        shares.push_back(static_cast<float>(share));
        mass[static_cast<std::size_t>(j)].first -= share;
        mass[static_cast<std::size_t>(j)].second = j;
        for (Index c = 0; c < dv; ++c)
          outputs[static_cast<std::size_t>(q * dv + c)] +=
              static_cast<float>(share) * values[static_cast<std::size_t>(j * dv + c)];
      }
    }
    const WeightFit fit(dv, shares, values, outputs);
    std::ranges::sort(mass);
    Tokens most;
    for (std::size_t k = 0; k < 10; ++k) most.push_back(mass[k].second);
    const Tokens greedy = fit.greedy(10);
    const Weights ones(greedy.size(), 1.0);
    const double own = fit.mean_error(most, Weights(10, 1.0));
    const double fitted = fit.mean_error(most, fit.weights(most, Weights(10, 1.0)));
    CHECK(fitted < own);
    CHECK(fit.mean_error(greedy, fit.weights(greedy, ones)) < 1.02 * fitted);
  }
}

TEST_CASE("fits that are too large are refused") {
  CHECK_NOTHROW(WeightFit::check_size(4096, 4096, 4096));
  CHECK_THROWS_AS(WeightFit::check_size(4097, 4096, 1), Infeasible);
  CHECK_THROWS_AS(WeightFit::check_size(1, 4096, 4097), Infeasible);
}
