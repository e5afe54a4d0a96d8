// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/checks.hpp>

#include <kvbench/bounds/balancekv/stream_sketch.hpp>
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/core/statistics.hpp>

#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;
using doctest::Approx;

TEST_CASE("Theorem 3.1: the method satisfies its bounds; wrong weights and lost logits violate them") {
  CheckRun run(200);
  const Subject subject = synthetic("short-keys", 3);
  const WalkSample sample = walk_sample(subject, 256, true);
  const Theorem31Setup setup{.seeds = 200};
  const StreamSketch stream = library_stream(subject, 256, setup, delta_of_calls(sample, setup), cpu());
  const auto rows_of = [&](const StreamSketch& sketch) {
    return run([&](CheckContext& context) { check_theorem31(context, sample, subject.queries, setup, sketch); },
               &subject);
  };
  const auto rows = rows_of(stream);
  CHECK_FALSE(any_fault(rows));
  CHECK(holds(row_of(rows, "|D'/D - 1|").verdict));
  CHECK(row_of(rows, "ln(D e^{a r^2} / j)").measured > 0);
  // All levels are one too high, so that every weight of D is doubled.
  const auto doubled = rows_of([&](std::uint32_t seed) {
    TokenWeights weights = stream(seed);
    for (double& weight : weights.den) weight *= 2;
    return weights;
  });
  CHECK(row_of(doubled, "|D'/D - 1|").verdict == Verdict::violated);
}

TEST_CASE("the check runs the method of the registry: weights sum to the number of tokens") {
  const Subject subject = synthetic("uneven-values", 1);
  const Theorem31Setup setup{.t = 8, .levels = 2};
  const TokenWeights weights = library_stream(subject, 64, setup, 0.01, cpu())(3);
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
  const Subject subject = synthetic("short-keys", 8);
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

TEST_CASE("Theorem 3.1: trivial is the error of answering 0, and the memory at eps counts all instances") {
  CheckRun run(20);
  const Subject subject = synthetic("mean-values", 2);
  const WalkSample sample = walk_sample(subject, 256, true);
  const Theorem31Setup setup{.seeds = 20};
  const StreamSketch stream = library_stream(subject, 256, setup, delta_of_calls(sample, setup), cpu());
  const auto rows =
      run([&](CheckContext& context) { check_theorem31(context, sample, subject.queries, setup, stream); }, &subject);
  CHECK_FALSE(any_fault(rows));
  // The answer 0 is off by |Attn|, at most the mean value here, and |softmax| |V|_F is at least |V|_F / sqrt(n): at
  // most 1.
  CHECK(row_of(rows, "Eq. 2").trivial <= 1);
  CHECK(row_of(rows, "Eq. 2").trivial > 0.5);
  const CheckRow& literal = row_of(rows, "memory at eps, literal");
  CHECK(literal.bound > 1);
  CHECK(literal.text.find("n* = ") != std::string::npos);
  const CheckRow& tight = row_of(rows, "memory at eps, tight");
  if (tight.failures) CHECK(tight.measured <= tight.bound);
}

TEST_CASE("the INDEX stream: keeping everything answers all bits, a small cache loses most") {
  CheckRun run(10);
  const Subject subject = index_instance(64, 8, cpu());
  const auto exact = query_rows(walk_sample(subject, 64, true), subject.queries);
  const auto mass = query_rows(walk_sample(subject, 64, false), subject.queries);
  for (std::size_t q = 0; q < 8; ++q) {
    CHECK(exact[q].total()[0] / mass[q].absolute == Approx(subject.value(static_cast<Index>(q) * 8)[0]).epsilon(1e-3));
  }
  const auto verdict_of = [&](double error) {
    const std::vector<double> errors(256, error);
    return run([&](CheckContext& context) { check_index_errors(context, "test", 4, errors); }).front().verdict;
  };
  CHECK(verdict_of(1) == Verdict::supported);
  CHECK(verdict_of(NAN) == Verdict::supported);
  CHECK(verdict_of(0.1) == Verdict::contradicted);
  for (const CheckRow& row : run(balancekv_lower_bound().run)) {
    CAPTURE(row.params);
    CHECK(row.verdict == Verdict::supported);
  }
}

TEST_CASE("memory rates: errors of independent samples fall with the square root of the memory") {
  CheckRun run(10);
  const Subject subject = synthetic("mean-values", 4);
  for (const CheckRow& row : run(balancekv_memory_rate().run, &subject)) {
    CAPTURE(row.params);
    CAPTURE(row.text);
    if (row.params.find("uniform") != std::string::npos) CHECK(row.measured == Approx(-0.6).epsilon(0.2));
    CHECK(row.measured < -0.3);
  }
}
