// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/growth.hpp>

#include <cmath>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::eval;

namespace {

/// Documents whose KL is multiplied by 2^slope from one of the lengths 512, 1024, 2048 to the next.
KlByLength growing(const std::vector<double>& slopes, double first = 0.01) {
  KlByLength out;
  for (std::size_t d = 0; d < slopes.size(); ++d) {
    for (int doubling = 0; doubling < 3; ++doubling)
      out[512 << doubling]["text-" + std::to_string(d)] =
          first * std::exp2(3.0 * static_cast<double>(d) + slopes[d] * doubling);
  }
  return out;
}

}  // namespace

TEST_CASE("slopes are paired: the factor and its interval by hand") {
  // Means .2, standard errors .1 / sqrt(3) / 10 = .00577; t_2 = 4.3027: 2^(.2 -+ .02484).
  const Growth g = growth_of(growing({0.19, 0.2, 0.21}));
  CHECK(g.verdict == Growing::grows);
  CHECK((g.documents == 3 && g.lengths == std::vector<Index>{512, 1024, 2048} && g.reason.empty()));
  CHECK(g.factor.mean == doctest::Approx(1.1487).epsilon(1e-4));
  CHECK(g.factor.lo == doctest::Approx(1.1291).epsilon(1e-4));
  CHECK(g.factor.hi == doctest::Approx(1.1686).epsilon(1e-4));
  // KL of the documents at 512 tokens: .01, .08, .64, a factor of 8 apart; 2^(4.3027 * 3 / sqrt(3)) = 2^7.4525.
  CHECK(g.kl[0].mean == doctest::Approx(0.08));
  CHECK(g.kl[0].hi == doctest::Approx(0.08 * 175.16).epsilon(1e-3));
}

TEST_CASE("lengths need not be apart by one doubling: least squares by hand") {
  // log2: 9, 10, 12, deviations -4/3, -1/3, 5/3 with squares of 14/3 in total; ln KL: 0, 0, ln 8. 5/3 ln 8 / (14/3).
  const KlByLength kl = {{512, {{"a", 1}, {"b", 2}}}, {1024, {{"a", 1}, {"b", 2}}}, {4096, {{"a", 8}, {"b", 16}}}};
  CHECK(std::log(growth_of(kl).factor.mean) == doctest::Approx(5.0 / 14 * std::log(8)));
}

TEST_CASE("what is said of growth follows from the interval and the margin") {
  CHECK(growth_of(growing({-0.01, 0, 0.01})).verdict == Growing::does_not_grow);  // [0.983, 1.017]
  CHECK(growth_of(growing({-0.1, 0, 0.1})).verdict == Growing::cannot_tell);      // [0.842, 1.188]
  CHECK(growth_of(growing({-0.21, -0.2, -0.19})).verdict == Growing::shrinks);    // below 0.886
  CHECK(growth_of(growing({0.09, 0.1, 0.11})).verdict == Growing::grows);         // [1.054, 1.090]
  CHECK(growth_of(growing({1, 3})).verdict == Growing::cannot_tell);              // two documents: t_1 = 12.7
  CHECK(growth_of(growing({1, 3})).factor.lo == doctest::Approx(std::exp2(2 - 12.706)).epsilon(1e-3));
  CHECK(growth_of(growing({1, 1.01})).verdict == Growing::grows);
}

TEST_CASE("without two documents at two lengths nothing can be told") {
  const Growth one = growth_of(growing({1}));
  CHECK((one.verdict == Growing::cannot_tell && one.documents == 1 && std::isnan(one.factor.lo)));
  CHECK(one.factor.mean == doctest::Approx(2));
  CHECK(one.reason == "one document, and an interval takes two");
  CHECK(growth_of({{512, {{"a", 1}, {"b", 1}}}}).reason == "fewer than two lengths");
  CHECK(growth_of({{512, {{"a", 1}}}, {1024, {{"b", 1}}}}).reason == "no document has all lengths");
  CHECK(growth_of({}).verdict == Growing::cannot_tell);
}

TEST_CASE("documents without a finite KL, and lengths at the floor of rounding, are left out") {
  KlByLength kl = growing({0.19, 0.2, 0.21, 5, 6});
  kl[1024]["text-3"] = INFINITY, kl[2048].erase("text-4");
  CHECK(growth_of(kl).documents == 3);
  CHECK(growth_of(kl).verdict == Growing::grows);
  kl[256] = {{"text-0", 9e-7}, {"text-1", 1}, {"text-2", 1}};
  const Growth g = growth_of(kl);
  CHECK(g.at_floor == std::vector<Index>{256});
  CHECK(g.factor.mean == doctest::Approx(std::exp2(0.2)));
  const Growth below = growth_of(growing({0.1, 0.2}, 1e-9));
  CHECK((below.verdict == Growing::cannot_tell && below.at_floor.size() == 3));
  CHECK(below.reason == "KL is below 1e-06 nats, where rounding may decide, at 512, 1024, 2048 tokens");
}
