// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/balancekv_exponent.hpp>
#include <kvbench/bounds/balancekv/balancekv_theorem31.hpp>

#include <kvbench/core/statistics.hpp>

#include "balance_fixture.hpp"

using namespace kvbench;
using namespace kvbench::testing;
using doctest::Approx;

TEST_CASE("Theorem 3.1: the method satisfies its bounds; wrong weights and lost logits violate them") {
  CheckRun run(200);
  const Subject subject = synthetic("short-keys", 3, run.backend());
  const WalkSample sample = walk_sample(subject, 256, true);
  const Theorem31Setup setup{.seeds = 200};
  const StreamSketch stream = library_stream(subject, 256, setup, delta_of_calls(sample, setup), run.backend());
  const auto rows_of = [&](const StreamSketch& sketch) {
    return run([&](CheckContext& context) { check_theorem31(context, sample, subject.queries, setup, sketch); }, &subject);
  };
  const auto rows = rows_of(stream);
  CHECK_FALSE(any_fault(rows));
  CHECK(holds(row_of(rows, "|D'/D - 1|").verdict));
  CHECK(row_of(rows, "ln(D e^{a r^2} / j)").measured > 0);
  // All levels are one too high, so that every weight of D is doubled.
  const auto doubled = rows_of([&](std::uint32_t seed) {
    StreamWeights weights = stream(seed);
    for (double& weight : weights.den) weight *= 2;
    return weights;
  });
  CHECK(row_of(doubled, "|D'/D - 1|").verdict == Verdict::violated);
}

TEST_CASE("the check runs the method of the registry: weights sum to the number of tokens") {
  const auto backend = make_cpu_backend();
  const Subject subject = synthetic("uneven-values", 1, *backend);
  const Theorem31Setup setup{.t = 8, .levels = 2};
  const StreamWeights weights = library_stream(subject, 64, setup, 0.01, *backend)(3);
  double num = 0, den = 0;
  for (std::size_t i = 0; i < weights.den.size(); ++i) num += weights.num[i], den += weights.den[i];
  CHECK(den == 64);  // pairs keep the sum
  CHECK(num == 64);
  CHECK(std::ranges::count(weights.den, 4) == 16);
}

namespace {

/// A random half of a list.
std::vector<std::int32_t> coins(const WalkSample& list, const std::vector<std::int32_t>&, std::uint32_t draw) {
  const Draws draws(draw, "coins", HeadPrompt{});
  std::vector<std::int32_t> signs;
  // One token of each pair of neighbours, so that the sum of the weights is kept.
  for (Index i = 0; i < list.n; ++i) {
    const std::int32_t first = draws.uniform(i / 2) < 0.5 ? 1 : -1;
    signs.push_back(i % 2 == 0 ? first : -first);
  }
  return signs;
}

/// n tokens of one dimension, equal except for a trend in the values, so that alternating signs are nearly exact.
WalkSample trend(Index n) {
  WalkSample sample{.n = n, .d = 1, .dv = 1, .scale = 1};
  for (Index i = 0; i < n; ++i) {
    sample.keys.push_back(0);
    sample.values.push_back(1 + static_cast<float>(i) / static_cast<float>(n));
  }
  return sample;
}

}  // namespace

TEST_CASE("slopes: random halves give -1/2, every second token of a trend gives -1") {
  CheckRun run(30);
  const Subject subject = synthetic("short-keys", 8, run.backend());
  const ExponentSetup setup{.tokens = 1024, .rounds = 5, .seeds = 60};
  const auto random = error_slopes(walk_sample(subject, 1024, true), subject.queries, setup, true, coins, [] {});
  CHECK(random.size() == 60);
  CHECK(mean(random) == Approx(-0.6).epsilon(0.15));  // err^2 ~ 1/kept - 1/n is a little steeper than -1/2
  const auto alternate = [](const WalkSample& list, const std::vector<std::int32_t>&, std::uint32_t) {
    std::vector<std::int32_t> signs;
    for (Index i = 0; i < list.n; ++i) signs.push_back(i % 2 == 0 ? 1 : -1);
    return signs;
  };
  const auto exact = error_slopes(trend(1024), {0.0f}, setup, true, alternate, [] {});
  CHECK(mean(exact) < -0.8);
  const auto rows = run([&](CheckContext& context) {
    check_exponent(context, walk_sample(subject, 1024, true), subject.queries, setup, "coins", coins);
  });
  CHECK(row_of(rows, "block = the list").verdict == Verdict::contradicted);
  CHECK_FALSE(any_fault(rows));
  CHECK(row_of(rows, "fixed block").text.find("like independent samples") != std::string::npos);
  CHECK(row_of(rows, "fixed block").bound == Approx(-0.6115).epsilon(1e-3));
}

TEST_CASE("keys whose exponentials overflow give bounds that are numbers or infinite, and no fault") {
  CheckRun run(20);
  Subject subject = synthetic("short-keys", 3, run.backend());
  for (float& x : subject.keys) x *= 300;
  for (float& x : subject.queries) x *= 150;
  subject.head.keys = run.backend().adopt(std::vector(subject.keys), subject.tokens(), subject.d());
  for (const Claim* claim : find_claims(all_claims(), {"balancekv", "subgen"}, {})) {
    if (claim->scope != Scope::head) continue;
    CAPTURE(claim->id);
    for (const CheckRow& row : run(claim->run, &subject)) {
      CAPTURE(row.part);
      CHECK_FALSE(is_fault(row));
      if (row.kind == CheckKind::theorem && row.failures) CHECK_FALSE(std::isnan(row.bound));
    }
  }
}
