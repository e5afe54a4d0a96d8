// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <kvbench/bounds/balancekv/checks.hpp>
#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/bounds/controls/adaptive_queries.hpp>

#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// A fair coin at every step: the threshold is not used.
WalkSigns coins(const WalkSample& sample, std::uint32_t seed) {
  const Draws draws(seed, "coins", HeadPrompt{});
  WalkSigns walked{.steps = sample.n};
  for (Index i = 0; i < sample.n; ++i) walked.signs.push_back(draws.uniform(i) < 0.5 ? 1 : -1);
  return walked;
}

SignWalk with_constant(SignWalk walk, double factor) {
  return [walk = std::move(walk), factor](const WalkSample& sample, WalkSettings settings, std::uint32_t seed) {
    settings.constant = {WalkConstant::Kind::number, settings.constant.of(sample.n, settings.delta) * factor};
    return walk(sample, settings, seed);
  };
}

SignWalk with_scale(SignWalk walk, float factor) {
  return [walk = std::move(walk), factor](WalkSample sample, const WalkSettings& settings, std::uint32_t seed) {
    WalkSettings other = settings;
    other.scale *= factor;
    return walk(sample, other, seed);
  };
}

}  // namespace

// Keys 0 and 2 ln 2 in one dimension, a = 1/2, values 3 and -4. a |k|^2 = 2 ln^2 2 for the second; the product of both
// is exp(0) * (-12). R^2 = exp(2 ln^2 2) 16.
TEST_CASE("products, radii and rows of two tokens by hand") {
  const auto two_ln2 = static_cast<float>(2 * std::log(2.0));
  const WalkSample sample{.n = 2, .d = 1, .dv = 1, .scale = 0.5, .keys = {0, two_ln2}, .values = {3, -4}};
  const double key = 2 * std::pow(std::log(2.0), 2), r2 = std::exp(key) * 16;
  CHECK(radii(sample).key == Approx(key));
  CHECK(radii(sample).log_r() == Approx(std::log(r2) / 2));
  const auto gram = relative_gram(sample);
  CHECK(gram[0] == Approx(9 / r2));
  CHECK(gram[1] == Approx(-12 / r2));
  CHECK(gram[3] == Approx(1));
  // A query of 1: exponents 0 and ln 2, rows 3 and -8, |phi(q)| = exp(1/4). Everything is relative to exp(ln 2).
  const auto rows = query_rows(sample, {1});
  CHECK(rows[0].shift == Approx(std::log(2.0)));
  CHECK(rows[0].rows[1] == Approx(-4));
  CHECK(rows[0].log_feature_norm == Approx(0.25));
  CHECK(rows[0].absolute == Approx(5.5));
  CHECK(rows[0].random_signs == Approx(std::sqrt(73.0) / 2));
  CHECK(weighted_norm(rows[0], std::vector<double>{1, -1}) == Approx(5.5));
  CHECK(rows[0].bound(3, radii(sample)) == Approx(3 * std::sqrt(r2) * std::exp(0.25) / 2));
}

// c = 1: sigma^2 = 1 at most. Lengths of 1 one by one: 0 + 1 [1 + 0] = 1, then 1 + [1 + (1 - 2)] = 1. Lengths of 1/2:
// 1/2, then 1/2 + 1/2 [1 + 1/2 (-3/2)] = 5/8.
TEST_CASE("the variance of a walk by hand") {
  CHECK(sub_gaussian(1) == Approx(1));
  CHECK(sub_gaussian(2) == Approx(4.0 / 3));
  CHECK(sub_gaussian(1, std::vector<double>{1, 1, 1}) == Approx(1));
  CHECK(sub_gaussian(1, std::vector<double>{0.5, 0.5}) == Approx(0.625));
  CHECK(sub_gaussian(5, std::vector<double>(4000, 1.0)) == Approx(sub_gaussian(5)));
  CHECK(sub_gaussian_norm(4, 1) == Approx(std::sqrt(10.0)));
}

TEST_CASE("a matrix that is not a Gram matrix is detected") {
  CHECK(negative_pivot({1, 0.5, 0.5, 1}, 2) == 0);
  CHECK(negative_pivot({1, 1, 1, 1}, 2) == 0);
  CHECK(negative_pivot({1, 2, 2, 1}, 2) == Approx(-3));
}

TEST_CASE("the law of a step holds for the walk and not for faulty walks") {
  CheckRun run(400);
  for (const bool with_values : {false, true}) {
    CAPTURE(with_values);
    const Subject subject = synthetic("short-keys", 1);
    const WalkSample sample = with_short_keys(walk_sample(subject, 48, with_values), 0.5);
    const SignWalk walk = library_walk(cpu());
    const auto rows_of = [&](const SignWalk& tested) {
      return run([&](CheckContext& context) { check_walk(context, sample, tested); });
    };
    CHECK_FALSE(any_fault(rows_of(walk)));
    // Thresholds of twice and half the correct value.
    for (const double factor : {2.0, 0.5}) {
      CAPTURE(factor);
      const auto rows = rows_of(with_constant(walk, factor));
      CHECK(row_of(rows, "sign of a step, classes").verdict == Verdict::violated);
      CHECK(row_of(rows, "sign of a step, drift").verdict == Verdict::violated);
      // One step of Newton finds 1/2; steps that are clamped hide some of the way to 2.
      if (factor == 2) CHECK(row_of(rows, "sign of a step, drift").measured == Approx(0.5).epsilon(0.2));
    }
    CHECK(any_fault(
        rows_of([](const WalkSample& s, const WalkSettings&, std::uint32_t seed) { return coins(s, seed); })));
  }
}

TEST_CASE("a wrongly scaled logit is detected") {
  CheckRun run(400);
  const Subject subject = synthetic("tight-clusters", 1);
  const WalkSample sample = with_short_keys(walk_sample(subject, 48, false), 0.5);
  for (const float factor : {2.0f, 0.25f}) {
    CAPTURE(factor);
    CHECK(any_fault(
        run([&](CheckContext& context) { check_walk(context, sample, with_scale(library_walk(cpu()), factor)); })));
  }
}

// 300 runs of the true walk, 60 seeds each: p-values below 1 % in at most 3 of them, in 12 with probability 1e-4.
TEST_CASE("the tests of a step have few false alarms") {
  const Subject subject = synthetic("tight-clusters", 1);
  const WalkSample sample = with_short_keys(walk_sample(subject, 24, false), 0.5);
  const SignWalk walk = library_walk(cpu());
  int classes = 0, drift = 0;
  for (std::uint32_t trial = 0; trial < 300; ++trial) {
    const SignWalk shifted = [&](const WalkSample& s, const WalkSettings& settings, std::uint32_t seed) {
      return walk(s, settings, seed + 1000 * (trial + 1));
    };
    const StepLaw law = step_law(sample, 1, 60, shifted, [] {});
    classes += law.classes < 0.01;
    drift += law.drift < 0.01;
  }
  CHECK(classes < 12);
  CHECK(drift < 12);
}

TEST_CASE("Theorem 3.2: the tight bound is not vacuous and holds; unbalanced signs violate it") {
  CheckRun run(100);
  const Subject subject = synthetic("short-keys", 4);
  const WalkSample sample = walk_sample(subject, 128, true);
  const Theorem32Setup setup{.seeds = 100, .seeds_of_ratios = 60};
  const auto rows = run(
      [&](CheckContext& context) { check_theorem32(context, sample, subject.queries, setup, library_walk(cpu())); });
  CHECK_FALSE(any_fault(rows));
  const CheckRow &tight = row_of(rows, "discrepancy, tight"), &data = row_of(rows, "discrepancy, data");
  CHECK(holds(tight.verdict));
  CHECK(holds(data.verdict));
  CHECK(data.bound <= tight.bound);
  CHECK(tight.bound < tight.literal);
  const auto all_plus = [](const WalkSample& s, const WalkSettings&, std::uint32_t) {
    return WalkSigns{.signs = std::vector<std::int32_t>(static_cast<std::size_t>(s.n), 1), .steps = s.n};
  };
  const WalkSample ones = walk_sample(subject, 128, false);
  const auto faulty =
      run([&](CheckContext& context) { check_theorem32(context, ones, subject.queries, setup, all_plus); });
  CHECK(row_of(faulty, "discrepancy, tight").verdict == Verdict::violated);
}

TEST_CASE("Theorem 3.4: plain vectors, their tight bound and a fault") {
  // Vectors 3 and 4 along the axes, direction (1, 1): rows 3 and 4, R = 4.
  const PlainVectors two = plain_vectors({3, 0, 0, 4}, {1, 1}, 2, 8);
  CHECK(two.sample.n == 2);
  CHECK(radii(two.sample).log_r() == Approx(std::log(4.0)));
  CHECK(relative_gram(two.sample)[1] == 0);
  CHECK(two.queries[0].rows == std::vector<double>{3, 4});
  CHECK(two.queries[0].log_feature_norm == Approx(std::log(2.0) / 2));

  CheckRun run(100);
  const Subject subject = synthetic("tight-clusters", 4);
  const PlainVectors vectors = plain_vectors(subject.keys, subject.queries, subject.d(), 128);
  const auto rows = run([&](CheckContext& context) { check_theorem34(context, vectors, 100, library_walk(cpu())); });
  CHECK_FALSE(any_fault(rows));
  CHECK(holds(row_of(rows, "discrepancy, tight").verdict));
  const auto same = plain_vectors(std::vector<float>(256, 1), {1, 1}, 2, 128);
  const auto all_plus = [](const WalkSample& s, const WalkSettings&, std::uint32_t) {
    return WalkSigns{.signs = std::vector<std::int32_t>(static_cast<std::size_t>(s.n), 1), .steps = s.n};
  };
  CHECK(any_fault(run([&](CheckContext& context) { check_theorem34(context, same, 100, all_plus); })));
}

TEST_CASE("heads and streams have their own draws, and another seed offset has other ones") {
  CheckRun run(10);
  const SignWalk walk = library_walk(cpu());
  // A threshold that is never felt: fair coins.
  WalkSample sample{.n = 64, .d = 1, .scale = 1, .keys = std::vector<float>(64, 0)};
  const WalkSettings settings{.constant = {WalkConstant::Kind::number, 1e6}};
  const auto first = walk(sample, settings, 3).signs;
  sample.head.head = KvHeadId(1);
  CHECK(walk(sample, settings, 3).signs != first);
  std::set<std::int32_t> prompts;
  for (const SubjectSource& source : synthetic_subjects(1)) prompts.insert(source.load(cpu()).head.prompt.value);
  CHECK(prompts.size() == synthetic_subjects(1).size());

  std::vector<std::uint32_t> seeds;
  const SignWalk recorded = [&](const WalkSample& s, const WalkSettings& given, std::uint32_t seed) {
    seeds.push_back(seed);
    return walk(s, given, seed);
  };
  const ValidateOptions options{.seeds = 10, .seed_offset = 500};
  std::vector<CheckRow> rows;
  CheckContext context{.options = options, .backend = cpu(), .rows = rows, .check = "balancekv"};
  check_walk(context, sample, recorded);
  CHECK(seeds.front() == 500);
  CHECK(seeds.back() == 509);
}

TEST_CASE("literal bounds are tested where they are informative, and otherwise say from which n on they would be") {
  CheckRun run(20);
  const Theorem32Setup setup{.seeds = 20, .seeds_of_ratios = 20};
  const Subject mean = synthetic("mean-values", 2), spread = synthetic("loose-clusters", 2);
  const auto literal = [&](const Subject& subject, const SignWalk& walk) {
    return run([&](CheckContext& context) { check_theorem32_literal(context, subject, setup, walk); }).front();
  };
  const CheckRow informative = literal(mean, library_walk(cpu()));
  CHECK(informative.bound < informative.trivial);
  CHECK_FALSE(is_fault(informative));
  const CheckRow vacuous = literal(spread, library_walk(cpu()));
  CHECK(vacuous.verdict == Verdict::vacuous);
  CHECK(vacuous.text.find("n* = ") != std::string::npos);
  const SignWalk all_plus = [](const WalkSample& s, const WalkSettings&, std::uint32_t) {
    return WalkSigns{.signs = std::vector<std::int32_t>(static_cast<std::size_t>(s.n), 1), .steps = s.n};
  };
  CHECK(is_fault(literal(mean, all_plus)));
}

TEST_CASE("negative control: a query along the signed sum exceeds the bound, and a short sum would not") {
  CheckRun run(20);
  const Subject subject = synthetic("short-keys", 1);
  const PlainVectors vectors = plain_vectors(subject.keys, subject.queries, subject.d(), 512);
  const auto verdict_of = [&](const SignWalk& walk) {
    return run([&](CheckContext& context) { check_adaptive(context, vectors, 20, walk); }).front().verdict;
  };
  CHECK(verdict_of(library_walk(cpu())) == Verdict::supported);
  // Greedy signs keep every sum short.
  const SignWalk greedy = [&](const WalkSample& s, WalkSettings settings, std::uint32_t seed) {
    settings.constant = {WalkConstant::Kind::greedy};
    return library_walk(cpu())(s, settings, seed);
  };
  CHECK(verdict_of(greedy) != Verdict::supported);
}
