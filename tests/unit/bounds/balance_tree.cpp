// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/checks.hpp>
#include <kvbench/bounds/check/verdicts.hpp>

#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

constexpr Index tokens = 256;
const Theorem33Setup setup{.seeds = 200};

std::vector<CheckRow> rows_of(CheckRun& run, const Subject& subject, bool with_values, const TreeSketch& sketch) {
  const WalkSample sample = walk_sample(subject, tokens, with_values);
  return run([&](CheckContext& context) { check_theorem33(context, sample, subject.queries, setup, sketch); });
}

}  // namespace

// 7 batches of 2 and T = 2: level 0 is reduced 7 times, level 1 3 times.
TEST_CASE("calls of a tree, and its variance, by hand") {
  CHECK(tree_calls(14, 2, 2) == std::vector<Index>{7, 3});
  CHECK(total_calls(14, 2, 2) == 10);
  // c = 1, v = 1: sigma^2 of a call = 2 R^2, so 2 (7 + 4 * 3) = 38.
  const TreeSettings settings{
      .t = 2, .levels = 2, .walk = {.constant = {WalkConstant::Kind::number, 1}, .pairs = true}};
  CHECK(tree_spread_of_pairs(14, settings, false) == Approx(std::sqrt(38.0)));
}

// Two pairs: keys 0, 0 differ by nothing; those of 1 and -1 by e + e - 2/e. R^2 = e.
TEST_CASE("the data bound of pairs by hand") {
  const WalkSample sample{.n = 4, .d = 1, .scale = 1, .keys = {0, 0, 1, -1}};
  const TreeSettings settings{
      .t = 4, .levels = 1, .walk = {.constant = {WalkConstant::Kind::number, 1}, .pairs = true}};
  const double length2 = 2 - 2 * std::exp(-2.0);
  // sigma^2 = 0, then one step of that length: the length itself.
  CHECK(tree_bound_of_pairs(sample, settings, 1).data == Approx(std::sqrt(length2) * sub_gaussian_norm(1, 1)));
  CHECK(tree_bound_of_pairs(sample, settings, 1).tight == Approx(std::sqrt(2.0) * sub_gaussian_norm(1, 1)));
}

TEST_CASE("Theorem 3.3: the tight bounds are not vacuous, and hold") {
  CheckRun run(200);
  const Subject subject = synthetic("short-keys", 3);
  for (const bool with_values : {false, true}) {
    CAPTURE(with_values);
    const auto rows = rows_of(run, subject, with_values, library_tree(cpu()));
    CHECK_FALSE(any_fault(rows));
    for (const char* part : {"halves, tight", "halves, data", "pairs, tight", "pairs, data", "pairs, z is"}) {
      CAPTURE(part);
      CHECK(holds(row_of(rows, part).verdict));
    }
    CHECK(row_of(rows, "pairs, data").bound <= row_of(rows, "pairs, tight").bound);
  }
}

TEST_CASE("a wrong weight and a batch that is too long are violations") {
  CheckRun run(200);
  const Subject subject = synthetic("short-keys", 3);
  const TreeSketch tree = library_tree(cpu());
  // Tokens that were halved twice have the weight 3 instead of 4.
  const auto light =
      rows_of(run, subject, false, [&](const WalkSample& s, const TreeSettings& settings, std::uint32_t seed) {
        TreeOutcome outcome = tree(s, settings, seed);
        for (double& weight : outcome.weights) weight = weight == 4 ? 3 : weight;
        return outcome;
      });
  CHECK(row_of(light, "pairs, z is").verdict == Verdict::violated);
  const auto double_weight =
      rows_of(run, subject, false, [&](const WalkSample& s, const TreeSettings& settings, std::uint32_t seed) {
        TreeOutcome outcome = tree(s, settings, seed);
        for (double& weight : outcome.weights) weight *= 2;
        return outcome;
      });
  CHECK(row_of(double_weight, "pairs, tight").verdict == Verdict::violated);
  const auto unread =
      rows_of(run, subject, false, [&](const WalkSample& s, const TreeSettings& settings, std::uint32_t seed) {
        TreeOutcome outcome = tree(s, settings, seed);
        outcome.sizes[1] = settings.t + 1;
        return outcome;
      });
  CHECK(row_of(unread, "|C^i|").verdict == Verdict::violated);
}

TEST_CASE("the literal bound of Theorem 3.3 is tested on the stream where it is informative") {
  CheckRun run(20);
  const Subject subject = synthetic("mean-values", 2);
  const auto literal = [&](const TreeSketch& tree) {
    return run([&](CheckContext& context) { check_theorem33_literal(context, subject, {.seeds = 20}, tree); }).front();
  };
  const TreeSketch tree = library_tree(cpu());
  const CheckRow row = literal(tree);
  CHECK(row.bound < row.trivial);
  CHECK_FALSE(is_fault(row));
  CHECK(is_fault(literal([&](const WalkSample& s, const TreeSettings& settings, std::uint32_t seed) {
    TreeOutcome outcome = tree(s, settings, seed);
    for (double& weight : outcome.weights) weight = 0;
    return outcome;
  })));
}
