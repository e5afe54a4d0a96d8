// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/paper_claim.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <support/messages.hpp>
#include <unit/compare/made.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;
using Is = Relation::Kind;

namespace {

ClaimResult tested(std::vector<const QueryResults*> files, std::vector<Relation> relations) {
  return test_claim({.text = "claim", .relations = std::move(relations)}, files);
}

/// The only result of a relation between x and y.
RelationResult one(const Made& made, Is kind, double within = 0) {
  const ClaimResult result = tested({&made}, {{.kind = kind, .a = "x", .b = "y", .within = within}});
  REQUIRE(result.results.size() == 1);
  CHECK(result.verdict == result.results[0].verdict);
  return result.results[0];
}

}  // namespace

TEST_CASE("verdicts on several instances") {
  using enum Verdict;
  const auto joint = [](std::vector<Verdict> all) { return joint_verdict(all); };
  CHECK(joint({supported, supported}) == supported);
  CHECK(joint({supported, undecided}) == undecided);
  CHECK(joint({supported, untestable}) == undecided);
  CHECK(joint({supported, contradicted, untestable}) == contradicted);
  CHECK(joint({untestable, untestable}) == untestable);
  CHECK(joint({}) == untestable);
}

// Constant values on 8 blocks: all signs agree, p = 2 / 2^8.
TEST_CASE("a planted difference supports a claim and contradicts its opposite") {
  const Made made = std::move(Made("m").with("x", constant(1)).with("y", constant(4)));
  const RelationResult lower = one(made, Is::lower);
  CHECK(lower.verdict == Verdict::supported);
  CHECK(lower.p_value == 2.0 / 256);
  CHECK(lower.comparison.p_adjusted == 2.0 / 256);
  CHECK(lower.comparison.ratio() == 0.25);
  CHECK(lower.comparison.ratio_interval.lo == Approx(0.25));
  CHECK(lower.comparison.ratio_interval.hi == Approx(0.25));
  CHECK(lower.comparison.test.difference == -3);
  CHECK(lower.comparison.test.blocks == 8);
  CHECK(one(made, Is::higher).verdict == Verdict::contradicted);
  CHECK(one(made, Is::higher).p_value == 2.0 / 256);
}

// Differences 1, 1, 1, 1, 1, -1, -1, -1 by block, sum 2: of the 256 choices of signs only the 70 with sum 0 are nearer
// to 0.
TEST_CASE("a difference within chance is undecided") {
  const Made made =
      std::move(Made("m").with("x", [](std::size_t q, auto) { return q < 80 ? 3.0f : 1.0f; }).with("y", constant(2)));
  const RelationResult result = one(made, Is::higher);
  CHECK(result.verdict == Verdict::undecided);
  CHECK(result.holds);
  CHECK(result.p_value == 186.0 / 256);
}

TEST_CASE("what cannot be decided says why") {
  const auto reason = [](const Made& made) {
    const RelationResult result = one(made, Is::lower);
    CHECK(result.verdict == Verdict::untestable);
    CHECK(std::isnan(result.p_value));
    return result.comparison.reason;
  };
  const RelationResult few = one(std::move(Made("m", 50).with("x", constant(1)).with("y", constant(3))), Is::lower);
  CHECK(few.verdict == Verdict::undecided);
  CHECK(few.p_value == 1);
  CHECK(contains(few.comparison.reason, "no p-value below 0.12 is possible; at least 6 blocks are needed"));
  CHECK(contains(reason(std::move(Made("m").with("x", constant(1), {7}).with("y", constant(3)))), "--seeds"));
  CHECK(contains(reason(std::move(Made("m").with("x", constant(INFINITY)).with("y", constant(3)))), "infinite"));
  CHECK(contains(reason(std::move(Made("m").with("x", constant(1)).failing("y", Status::skipped))),
                 "y skipped: it cannot"));
  CHECK(contains(reason(std::move(Made("m").with("x", constant(1)))), "no method 'y'"));
  CHECK(contains(reason(std::move(Made("m").with("x", constant(1)).with("y", constant(1), {}, "", "50%"))),
                 "no budget in common"));
  CHECK(contains(reason(std::move(Made("m").with("x", constant(1)).with("y", constant(3)).dense())), "kept exact"));
  const ClaimResult untestable = test_claim({.text = "c", .untestable = "scores of tasks"}, {});
  CHECK(untestable.verdict == Verdict::untestable);
  CHECK(verdict_text(untestable) == "untestable: c\n  scores of tasks\n");
}

TEST_CASE("tolerances: at least 95 %, equal within 5 %") {
  const auto made = [](float x) { return std::move(Made("m").with("x", constant(x)).with("y", constant(1))); };
  CHECK(one(made(0.97f), Is::at_least, 0.05).verdict == Verdict::supported);
  CHECK(one(made(0.97f), Is::at_least, 0.01).verdict == Verdict::contradicted);
  CHECK(one(made(0.97f), Is::equal, 0.05).verdict == Verdict::supported);
  CHECK(one(made(0.93f), Is::equal, 0.05).verdict == Verdict::contradicted);
  CHECK(one(made(1.07f), Is::equal, 0.05).verdict == Verdict::contradicted);
  // Above the lower limit for certain (p = 2/256), below the upper one within chance: the larger p-value counts.
  const Made wide =
      std::move(Made("m").with("x", [](std::size_t q, auto) { return q < 80 ? 1.0f : 1.09f; }).with("y", constant(1)));
  const RelationResult result = one(wide, Is::equal, 0.05);
  CHECK(result.holds);
  CHECK(result.p_value > 0.05);
  CHECK(result.verdict == Verdict::undecided);
}

TEST_CASE("a number in place of b, paired with every seed") {
  const Value rate = [](auto, std::uint32_t seed) { return 0.7f + 0.01f * static_cast<float>(seed); };
  const Made made = std::move(Made("m").with("x", rate, {0, 1, 2}).holding(100));
  const auto at_least = [&](double number) {
    return tested({&made}, {{.kind = Is::at_least, .a = "x", .number = number}}).results.at(0);
  };
  CHECK(at_least(0.63).verdict == Verdict::supported);
  CHECK(at_least(0.63).comparison.b == "0.63");
  CHECK(at_least(0.63).comparison.seeds == 3);
  CHECK(at_least(0.63).comparison.test.mean_b == Approx(0.63));
  CHECK(at_least(0.8).verdict == Verdict::contradicted);
  CHECK(at_least(0.8).comparison.reason.empty());  // a number has no cost
}

TEST_CASE("Holm counts all tests of a claim") {
  const Made made = std::move(Made("m").with("x", constant(1)).with("y", constant(2)));
  const Relation lower{.a = "x", .b = "y"};
  const ClaimResult six = tested({&made}, std::vector<Relation>(6, lower)),
                    seven = tested({&made}, std::vector<Relation>(7, lower));
  CHECK(six.verdict == Verdict::supported);
  CHECK(six.results[5].comparison.p_adjusted == Approx(6 * 2.0 / 256));
  CHECK(seven.verdict == Verdict::undecided);  // 7 * 2 / 256 > 0.05
  CHECK(seven.results[0].comparison.family == 7);
}

TEST_CASE("one result per budget and per place, of the run that the relation names") {
  Made one("1", 128, 4, "r"), two("2", 128, 5, "r"), other("3", 128, 4, "s");
  one.with("x", constant(1))
      .with("y", constant(2))
      .with("x", constant(1), {}, "", "50%")
      .with("y", constant(2), {}, "", "50%");
  two.with("x", constant(3)).with("y", constant(2));
  other.with("x", constant(1)).with("y", constant(9));
  const ClaimResult layers = tested({&one, &two, &other}, {{.run = "r", .a = "x", .b = "y", .by = Span::layer}});
  REQUIRE(layers.results.size() == 3);
  CHECK(test_text(layers.results[0], true) == "t.h5, run r, prompt 0, layer 4, budget 25%");
  CHECK(test_text(layers.results[1], false) == "run r, prompt 0, layer 4, budget 50%");
  CHECK(test_text(layers.results[2], false) == "run r, prompt 0, layer 5, budget 25%");
  CHECK(layers.results[1].verdict == Verdict::supported);
  CHECK(layers.results[2].verdict == Verdict::contradicted);
  CHECK(layers.verdict == Verdict::contradicted);
  const std::string text = verdict_text(layers);
  CHECK(contains(text, "contradicted: claim\n"));
  CHECK(contains(text, "x lower than y, by layer: 2 supported, 1 contradicted; ratio 0.5 to 1.5\n"));
  CHECK(contains(text,
                 "contradicted: x and y, run r, prompt 0, layer 5, budget 25%: ratio 1.5 [1.5, 1.5], p = 0.0078 (0.023 "
                 "by Holm), 8 blocks of queries\n"));
  CHECK(contains(text, "  3 tests of rel_err over 8 blocks of queries, Holm at 5 %\n"));
  const ClaimResult mean = tested({&one, &two, &other}, {{.run = "r", .a = "x@25%", .b = "y@25%"}});
  REQUIRE(mean.results.size() == 1);
  CHECK(mean.results[0].comparison.test.difference == 0);
  CHECK(mean.verdict == Verdict::undecided);
}

// 25 % of a context of 4096 tokens are 1024.
TEST_CASE("below the tokens that a relation needs it is untestable, and does not count in Holm's family") {
  Made made("1", 128);
  made.with("x", constant(1)).with("y", constant(2)).with("x", constant(1), {}, "", "50%");
  made.with("y", constant(2), {}, "", "50%");
  const ClaimResult result = tested({&made}, {{.a = "x", .b = "y", .tokens = 1025, .below = "a cluster is larger"}});
  REQUIRE(result.results.size() == 2);
  CHECK(result.results[0].verdict == Verdict::untestable);
  const std::string& reason = result.results[0].comparison.reason;
  CHECK(reason == "a budget of 1024 tokens is too small, it takes 1025: a cluster is larger");
  CHECK(result.results[1].verdict == Verdict::supported);
  CHECK(result.results[1].comparison.family == 1);
  CHECK(tested({&made}, {{.a = "x", .b = "y", .tokens = 1024, .below = "why"}}).verdict == Verdict::supported);
}

// Ratios y / x of 2, 4, 8 and 16 on four of eight layers: log2 has the mean 2.5, with a standard error of sqrt(5 / 12);
// t_3 is 3.1824 at 5 %. Over blocks of queries, whose values are constant, every difference would be significant.
TEST_CASE("a claim about a model is tested over its layers, where the trace has several") {
  std::vector<Made> layers;
  for (const std::int64_t layer : {0, 2, 4, 6}) {
    const auto ratio = static_cast<float>(2 * std::exp2(layer / 2));
    layers.push_back(std::move(Made("m", 128, layer).with("x", constant(1)).with("y", constant(ratio)).of_layers(8)));
  }
  const std::vector<const QueryResults*> files = {&layers[0], &layers[1], &layers[2], &layers[3]};
  const ClaimResult lower = tested(files, {{.a = "x", .b = "y"}});
  CHECK(lower.verdict == Verdict::supported);
  CHECK(lower.results[0].p_value == Approx(0.0305).epsilon(0.01));  // t = 3.873
  CHECK(lower.results[0].comparison.units == 4);
  CHECK(verdict_text(lower) ==
        "supported: claim\n  x lower than y: 1 supported; ratio 0.177 [0.0426, 0.734]\n"
        "  1 test of rel_err over 4 of 8 layers, Holm at 5 %\n");
  // x / (y / 4): log2 has the mean -0.5, t = -0.77.
  const ClaimResult half = tested(files, {{.kind = Is::at_least, .a = "x", .b = "y", .within = 0.75}});
  CHECK(half.verdict == Verdict::undecided);
  CHECK(!half.results[0].holds);
  CHECK(half.results[0].p_value == Approx(0.495).epsilon(0.01));
  // On one layer alone blocks of queries decide, and one layer does not speak for the others.
  CHECK(tested({&layers[3]}, {{.a = "x", .b = "y", .by = Span::layer}}).verdict == Verdict::supported);
  const ClaimResult one = tested({&layers[3]}, {{.a = "x", .b = "y"}});
  CHECK(one.verdict == Verdict::undecided);
  CHECK(one.results[0].p_value == 1);
  CHECK(contains(one.results[0].comparison.reason, "for the replayed layers alone"));
}

TEST_CASE("a relation that is tested in several runs shows each of them") {
  const auto run = [](const char* name, float x) {
    return std::move(Made("m", 128, 4, name).with("x", constant(x)).with("y", constant(2)));
  };
  const Made own = run("own", 1), other = run("other", 3);
  const std::string text = verdict_text(tested({&own, &other}, {{.a = "x", .b = "y"}}));
  CHECK(
      text.starts_with("contradicted as a whole (run own: x lower than y: 1 supported; run other: x lower than y: "
                       "1 contradicted): claim\n"));
  CHECK(contains(text, "  run other: x lower than y: 1 contradicted; ratio 1.5 [1.5, 1.5]\n"));
}

TEST_CASE("a verdict that joins variants without deciding shows those of each") {
  const Made made = std::move(Made("m")
                                  .with("released", constant(1))
                                  .with("paper", [](std::size_t q, auto) { return q < 80 ? 3.0f : 1.0f; })
                                  .with("y", constant(2)));
  const ClaimResult both = tested({&made}, {{.a = "released", .b = "y"}, {.a = "paper", .b = "y"}});
  CHECK(both.verdict == Verdict::undecided);
  const std::string text = verdict_text(both);
  CHECK(text.substr(0, text.find('\n')) ==
        "undecided as a whole (released lower than y: 1 supported; paper lower than y: 1 undecided): claim");
}

TEST_CASE("a parameter may be named although it has its default value") {
  const Made made =
      std::move(Made("m").with("clusterkv", constant(1)).with("clusterkv", constant(2), {}, "distance=l2"));
  const Relation relation{.a = "clusterkv[distance=cosine]", .b = "clusterkv[distance=l2;tokens_per_cluster=80]"};
  CHECK(tested({&made}, {relation}).verdict == Verdict::supported);
}
