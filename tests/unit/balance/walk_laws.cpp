// SPDX-License-Identifier: Apache-2.0
// The distribution of the signs, compared with literal transcriptions of Algorithms 2 and 4 by enumeration of all coins and by
// chi-square tests.
#include <doctest/doctest.h>

#include <random>

#include <kvbench/methods/sampling/softmax_balance.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <support/chi_square.hpp>
#include <support/small.hpp>

#include "literal_balancekv.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

constexpr Index n = 5;
constexpr std::uint32_t trials = 20000;

/// Five tokens of two dimensions in key and value.
struct Case {
  std::vector<float> keys = {1, 0.5f, -0.5f, 1, 0.25f, 0.25f, 1, -1, -1, 0};
  std::vector<float> values = {1, 0, 0.5f, -0.5f, 1, 1, -0.5f, 1, 0.25f, 1};
  double r_key = std::sqrt(2.0), r_value = std::sqrt(2.0);

  Pairs pairs() const {
    Pairs all;
    for (Index i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      all.push_back({i, {keys[at], keys[at + 1]}, {values[at], values[at + 1]}});
    }
    return all;
  }
};

std::size_t pattern(const auto& signs) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < signs.size(); ++i) bits |= std::size_t{signs[i] > 0} << i;
  return bits;
}

/// The probability of each sign pattern: walk(coin) with all coins, each weighted with its probability.
template <class Walk>
std::vector<double> law_of(Walk walk) {
  std::vector<double> law(1 << n);
  for (std::size_t script = 0; script < law.size(); ++script) {
    double probability = 1;
    std::size_t step = 0;
    const auto signs = walk([&](const Pair&, double p) {
      const double clamped = std::clamp(p, 0.0, 1.0);
      const bool plus = (script >> step++ & 1) != 0;
      probability *= plus ? clamped : 1 - clamped;
      return plus;
    });
    law[pattern(signs)] += probability;
  }
  return law;
}

/// Counts of the sign patterns of the fast walk over seeds.
std::vector<double> counts_of(const Case& c, double scale, const std::string& constant, bool pairs = false) {
  const auto backend = make_cpu_backend();
  const HeadPrompt head;
  std::vector<double> counts(1 << n);
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    const WalkRows rows{.keys = backend->adopt(std::vector(c.keys), n, 2),
                        .values = backend->adopt(std::vector(c.values), n, 2),
                        .starts = {0, n},
                        .uniforms = token_uniforms(Draws(seed, "balancekv", head), token_range(0, n), 0)};
    const WalkSettings settings{
        .constant = parse_walk_constant("c", constant), .pairs = pairs, .scale = static_cast<float>(scale)};
    counts[pattern(softmax_balance(rows, settings, *backend).signs)] += 1;
  }
  return counts;
}

}  // namespace

TEST_CASE("signs have the distribution of Algorithm 2, far from fair coins") {
  const Case c;
  for (const double constant : {0.4, 1.0}) {
    const auto walk = [&](double r_key, double r_value, double number) {
      return law_of([&, r_key, r_value, number](const Coin& coin) {
        return softmax_balance(
                   c.pairs(), 0.7, r_key, r_value, [=](Index) { return number; }, coin)
            .eta;
      });
    };
    const auto counts = counts_of(c, 0.7, std::to_string(constant));
    CHECK(follows(counts, walk(c.r_key, c.r_value, constant)));
    // The same counts reject the opposite sign of the step, another constant and fair coins.
    CHECK_FALSE(follows(counts, walk(c.r_key, c.r_value, -constant)));
    CHECK_FALSE(follows(counts, walk(c.r_key, c.r_value, 1.3 * constant)));
    CHECK_FALSE(follows(counts, std::vector<double>(32, 1.0 / 32)));
  }
}

TEST_CASE("coins of the listing have the same distribution") {
  const Case c;
  std::mt19937_64 engine(5);
  const auto run = [&](const Coin& coin) {
    return softmax_balance(
               c.pairs(), 0.7, c.r_key, c.r_value, [](Index) { return 0.4; }, coin)
        .eta;
  };
  std::vector<double> counts(1 << n);
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    counts[pattern(
        run([&](const Pair&, double p) { return std::uniform_real_distribution<double>(0, 1)(engine) < p; }))] += 1;
  }
  CHECK(follows(counts, law_of(run)));
}

TEST_CASE("with exponents of zero the walk is Algorithm 4 on the values") {
  const Case c;
  const auto law = law_of([&](const Coin& coin) { return self_balancing_walk(c.pairs(), c.r_value, 0.6, coin); });
  CHECK(follows(counts_of(c, 0, "0.6"), law));
}

TEST_CASE("half=exact walks over differences, within twice the radius") {
  // With scale 0 the differences are v_0 - v_1 and v_2 - v_3; the fifth value walks alone. Algorithm 4 with radius 2 r_value.
  const Case c;
  Pairs differences;
  for (std::size_t i = 0; i < 4; i += 2) {
    Vector u;
    for (std::size_t k = 0; k < 2; ++k) u.push_back(double{c.values[2 * i + k]} - double{c.values[2 * i + 2 + k]});
    differences.push_back({static_cast<Index>(i), {}, u});
  }
  differences.push_back({4, {}, {c.values[8], c.values[9]}});
  std::vector<double> law(1 << n);
  const auto triples = law_of([&](const Coin& coin) {
    const auto s = self_balancing_walk(differences, 2 * c.r_value, 0.3, coin);
    return std::vector<int>{s[0], -s[0], s[1], -s[1], s[2]};
  });
  // law_of() scripts five coins and the walk takes three: each pattern is counted four times.
  for (std::size_t i = 0; i < law.size(); ++i) law[i] = triples[i] / 4;
  CHECK(follows(counts_of(c, 0, "0.3", true), law));
}

TEST_CASE("the greedy walk is the limit of small constants") {
  const Case c;
  const auto greedy = softmax_balance(c.pairs(), 0.7, c.r_key, c.r_value, [](Index) { return 0.0; }, {}).eta;
  const auto counts = counts_of(c, 0.7, "greedy");
  CHECK(counts[pattern(greedy)] == trials);
  // With a tiny constant only the first sign is random.
  const auto tiny = counts_of(c, 0.7, "1e-9");
  CHECK(tiny[pattern(greedy)] + tiny[31 - pattern(greedy)] == trials);
}

TEST_CASE("thresholds are shifted with the exponents: large keys give the signs of the listing") {
  Case c;
  for (float& x : c.keys) x *= 9;  // exponents up to 0.7 * 162: exp of it has 49 digits
  c.r_key *= 9;
  const auto law = law_of([&](const Coin& coin) {
    return softmax_balance(
               c.pairs(), 0.7, c.r_key, c.r_value, [](Index) { return 0.4; }, coin)
        .eta;
  });
  CHECK(follows(counts_of(c, 0.7, "0.4"), law));
}
