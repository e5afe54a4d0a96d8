// SPDX-License-Identifier: Apache-2.0
// The distribution of the signs of `softmax_balance` over seeds, against the law of the recomputed walk: the
// probability of each step is the largest uniform number with which the recomputation gives it the sign +1.
#include <doctest/doctest.h>

#include <kvbench/faithful/oracle/balancekv.hpp>
#include <kvbench/methods/sampling/softmax_balance.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <support/backends.hpp>
#include <support/chi_square.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::test;
using namespace kvbench::testing;
using kvbench::faithful::BalanceSetup;
using kvbench::faithful::WalkRules;

namespace {

constexpr Index n = 5;
constexpr std::uint32_t trials = 20000;

/// Five tokens of two dimensions in key and value, and the settings of a walk over them.
struct Case {
  std::vector<float> keys = {1, 0.5f, -0.5f, 1, 0.25f, 0.25f, 1, -1, -1, 0};
  std::vector<float> values = {1, 0, 0.5f, -0.5f, 1, 1, -0.5f, 1, 0.25f, 1};
  float scale = 0.7f;
  std::string constant = "0.4";
  bool pairs = false;
};

std::size_t pattern(const std::vector<int>& signs) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < signs.size(); ++i) bits |= std::size_t{signs[i] > 0} << i;
  return bits;
}

std::vector<int> recomputed(const Case& c, const std::vector<double>& uniforms, const WalkRules& rules) {
  const faithful::WalkVectors vectors{.d = 2, .dv = 2, .scale = double{c.scale}, .keys = c.keys, .values = c.values};
  const std::vector<Index> tokens = {0, 1, 2, 3, 4};
  const BalanceSetup setup{.constant = c.constant, .pairs = c.pairs};
  return walk_of_paper(vectors, {.tokens = tokens, .uniforms = uniforms, .radii = radii_of(vectors, tokens)}, setup,
                       rules)
      .signs;
}

/// The probability that the walk draws +1 at a step, given the uniform numbers of the steps before it.
double chance_of_plus(const Case& c, std::vector<double> uniforms, std::size_t step, const WalkRules& rules) {
  double lo = 0, hi = 1;
  const auto plus_with = [&](double uniform) {
    uniforms[step] = uniform;
    return recomputed(c, uniforms, rules)[step] > 0;
  };
  if (!plus_with(0)) return 0;
  for (int halving = 0; halving < 40; ++halving) (plus_with((lo + hi) / 2) ? lo : hi) = (lo + hi) / 2;
  return hi > 1 - 1e-9 ? 1 : lo;
}

/// The probability of each pattern of signs. Of a pair, the second sign is the opposite of the first.
void add_law(const Case& c, const WalkRules& rules, std::vector<double> uniforms, std::size_t step, double probability,
             std::vector<double>& law) {
  if (probability == 0) return;
  if (step == n) {
    law[pattern(recomputed(c, uniforms, rules))] += probability;
    return;
  }
  if (c.pairs && step % 2 == 1) return add_law(c, rules, std::move(uniforms), step + 1, probability, law);
  const double plus = chance_of_plus(c, uniforms, step, rules);
  for (const bool sign : {true, false}) {
    uniforms[step] = sign ? plus / 2 : (1 + plus) / 2;
    add_law(c, rules, uniforms, step + 1, probability * (sign ? plus : 1 - plus), law);
  }
}

std::vector<double> law_of(const Case& c, const WalkRules& rules = {}) {
  std::vector<double> law(1 << n);
  add_law(c, rules, std::vector<double>(n, 0.5), 0, 1, law);
  return law;
}

/// Counts of the patterns of the method's signs over seeds.
std::vector<double> counts_of(const Case& c) {
  const HeadPrompt head;
  std::vector<double> counts(1 << n);
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    const WalkRows rows{.keys = cpu().adopt(std::vector(c.keys), n, 2),
                        .values = cpu().adopt(std::vector(c.values), n, 2),
                        .starts = {0, n},
                        .uniforms = token_uniforms(Draws(seed, "balancekv", head), token_range(0, n), 0)};
    const WalkSettings settings{.constant = parse_walk_constant("c", c.constant), .pairs = c.pairs, .scale = c.scale};
    const auto signs = softmax_balance(rows, settings, cpu()).signs;
    counts[pattern({signs.begin(), signs.end()})] += 1;
  }
  return counts;
}

}  // namespace

TEST_CASE("signs have the distribution of Algorithm 2, far from fair coins") {
  for (const auto& [constant, larger] : {std::pair("0.4", "0.52"), std::pair("1.0", "1.3")}) {
    const Case c{.constant = constant};
    const auto counts = counts_of(c);
    CHECK(follows(counts, law_of(c)));
    // The same counts reject the opposite sign of the step, another constant and fair coins.
    CHECK_FALSE(follows(counts, law_of(c, {.drift = 1})));
    CHECK_FALSE(follows(counts, law_of({.constant = larger})));
    CHECK_FALSE(follows(counts, std::vector<double>(32, 1.0 / 32)));
  }
}

TEST_CASE("with exponents of zero the walk is Algorithm 4 on the values") {
  const Case c{.scale = 0, .constant = "0.6"};
  CHECK(follows(counts_of(c), law_of(c)));
}

TEST_CASE("half=exact walks over differences, within twice the radius") {
  for (const float scale : {0.0f, 0.7f}) {
    const Case c{.scale = scale, .constant = "0.3", .pairs = true};
    const auto counts = counts_of(c);
    CHECK(follows(counts, law_of(c)));
    CHECK_FALSE(follows(counts, law_of(c, {.pair_radius2 = 1})));
  }
}

TEST_CASE("the greedy walk is the limit of small constants") {
  const Case c{.constant = "greedy"};
  const std::size_t greedy = pattern(recomputed(c, std::vector<double>(n, 0.5), {}));
  CHECK(counts_of(c)[greedy] == trials);
  // With a tiny constant only the first sign is random.
  const auto tiny = counts_of({.constant = "1e-9"});
  CHECK(tiny[greedy] + tiny[31 - greedy] == trials);
}

TEST_CASE("thresholds are shifted with the exponents: large keys give the signs of the paper") {
  Case c;
  for (float& x : c.keys) x *= 9;  // exponents up to 0.7 * 162: exp of it has 49 digits
  CHECK(follows(counts_of(c), law_of(c)));
}
