// SPDX-License-Identifier: Apache-2.0
// The recomputation of SubGen's Algorithm 1 by hand; the method agrees with it on adverse streams; planted faults are
// found.
#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

#include <map>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>
#include <kvbench/methods/registry.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Subject line(std::vector<float> keys, std::vector<float> values) {
  return make_subject({.name = "line", .keys = std::move(keys), .values = std::move(values), .queries = {1}}, ref());
}

std::map<TokenId, std::pair<double, double>> weights_of(const Snapshot& snapshot) {
  std::map<TokenId, std::pair<double, double>> weights;
  for (const HeldEntry& entry : snapshot.held) weights[entry.id] = {entry.num, entry.den};
  return weights;
}

Judged checked(const Subject& subject) { return {subject, subgen_algorithm1().run}; }

/// Normal keys and values of d = 3, with what `edit` does to a token.
template <class F>
Subject edited(Index n, F edit) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal;
  std::vector<float> keys, values, queries;
  for (Index i = 0; i < n; ++i) {
    std::vector<float> key = {normal(engine), normal(engine), normal(engine)};
    std::vector<float> value = {normal(engine), normal(engine), 2 + normal(engine)};
    edit(i, key, value);
    keys.insert(keys.end(), key.begin(), key.end());
    values.insert(values.end(), value.begin(), value.end());
  }
  for (int i = 0; i < 6; ++i) queries.push_back(normal(engine));
  return make_subject({.name = "edited",
                       .keys = std::move(keys),
                       .values = std::move(values),
                       .queries = std::move(queries),
                       .d = 3,
                       .dv = 3,
                       .scale = 0.6f},
                      cpu());
}

std::int64_t compared(const Judged& judged) {
  std::int64_t times = 0;
  for (const CheckRow& row : judged.rows()) times += row.trials.value_or(0);
  return times;
}

}  // namespace

TEST_CASE("recomputed clusters, by hand") {
  const Subject subject = line({0, 1, 5, 0.5, 6, 10, 5.5, 3.1f}, std::vector<float>(8, 1));
  const SubgenClusters clusters = subgen_clusters(subject, 8, 8, 2, {});
  CHECK(clusters.labels == std::vector<std::int32_t>{0, 0, 1, 0, 1, 2, 1, 1});
  CHECK(clusters.opened_by == std::vector<TokenId>{0, 2, 5});
  CHECK(clusters.decided == 8);
  // A decoded key 3.1 joins 0 or 5 at twice the radius; 5 is nearer, 0 is the first.
  CHECK(subgen_clusters(subject, 7, 8, 2, {.nearest = false, .decoded_radius = 2}).labels[7] == 0);
  // 1 is within the radius of 0.5, the newest key of the first cluster, but not of 0.
  const Subject drifting = line({0, 0.5, 1, 1.5}, std::vector<float>(4, 1));
  CHECK(subgen_clusters(drifting, 4, 4, 0.75, {}).labels == std::vector<std::int32_t>{0, 0, 1, 1});
  CHECK(subgen_clusters(drifting, 4, 4, 0.75, {.first_key_represents = false}).labels == std::vector<std::int32_t>(4));
}

TEST_CASE("decisions that rounding could change end what is compared") {
  // 2 lies at the radius; 0.1f + 0.2f differs from 0.3f by rounding only.
  CHECK(subgen_clusters(line({0, 1, 2, 9}, {1, 1, 1, 1}), 4, 4, 2, {}).decided == 2);
  CHECK(subgen_clusters(line({0, 9, 0.3f, 20}, {1, 1, 1, 1}), 4, 4, double{0.1f} + double{0.2f}, {}).decided == 2);
  // 1 is as near to 0 as to 2. Equal keys are decided at every radius.
  CHECK(subgen_clusters(line({0, 2, 1, 1}, {1, 1, 1, 1}), 4, 4, 1.5, {}).decided == 2);
  CHECK(subgen_clusters(line({3, 3, 4, 3}, {1, 1, 1, 1}), 4, 4, 0, {}).decided == 4);
}

TEST_CASE("recomputed lists, by hand") {
  // |v|^2 = 1, 4, 0, 1, so mu = 1, 5, 5, 6; the first two keys are one cluster, the others clusters of their own.
  const Subject subject = line({0, 1, 10, 20}, {1, -2, 0, 1});
  std::map<TokenId, int> slots, samples;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Draws draws(seed, "subgen", subject.head);
    const StreamPlan plan{.prompt = 2, .appended = 2, .seed = seed};
    const OracleRun run = subgen_oracle(subject, plan, {.t = 1, .s = 1, .delta = 2});
    REQUIRE(run.times.size() == 3);
    CHECK(run.decided == 3);
    // The slot filled at mu = 1 is filled again where mu reaches 1 / U.
    const double reaches = 1 / draws.uniform(0, 0);
    TokenId slot = reaches <= 5 ? 1 : 0;
    if (slot == 0 ? reaches <= 6 : 5 / draws.uniform(1, 0) <= 6) slot = 3;
    const TokenId sample = 1 / draws.uniform(0, 0x80000000u) <= 2 ? 1 : 0;
    std::map<TokenId, std::pair<double, double>> expected;
    expected[slot].first = slot == 1 ? 6.0 / 4 : 6.0;
    expected[sample].second = 2;
    expected[2].second = expected[3].second = 1;
    CHECK(weights_of(run.times.back()) == expected);
    ++slots[slot], ++samples[sample];
  }
  CHECK(slots.size() == 3);
  CHECK(samples.size() == 2);
}

TEST_CASE("recomputed radius of the budget, by hand") {
  const Subject subject = line({0, 1, 2, 3, 100}, std::vector<float>(5, 1));
  CHECK(subgen_budget_radius(subject, 5, 5).delta == 0);
  // All keys lie within 100.1 of the first; half of it gives the two clusters asked for.
  CHECK(subgen_budget_radius(subject, 5, 2).delta == doctest::Approx(50.05));
  // t = 4 and s = 2 of d = dv = 1: 5 m' + 4 <= 2 B.
  CHECK(subgen_most_clusters(subject, {.t = 4, .s = 2}, 9) == 2);
  CHECK(subgen_most_clusters(subject, {.t = 4, .s = 2}, 4) == 0);
}

TEST_CASE("subgen agrees with Algorithm 1 on adverse streams") {
  const auto nothing = [](Index, auto&, auto&) {};
  const auto agrees = [&](const Subject& subject) {
    const Judged judged = checked(subject);
    CHECK(judged.none_violated());
    return compared(judged);
  };
  const Subject usual = edited(300, nothing);
  CHECK(agrees(usual) > 500);
  SUBCASE("draws of another head") {
    Subject other = usual;
    other.head.layer = LayerId{7}, other.head.head = KvHeadId{3}, other.head.prompt = PromptId{2};
    CHECK(agrees(other) > 500);
  }
  SUBCASE("equal keys") {
    CHECK(agrees(edited(200, [](Index i, auto& key, auto&) { key = {1, 2, float(i % 3)}; })) > 0);
    CHECK(agrees(edited(200, [](Index, auto& key, auto&) { key = {1, 2, 3}; })) > 500);
  }
  SUBCASE("zero and tiny values") {
    CHECK(agrees(edited(200, [](Index i, auto&, auto& value) {
            if (i < 190) value = {0, 0, 0};
          })) > 0);
    CHECK(agrees(edited(200, [](Index, auto&, auto& value) { value = {0, 0, 0}; })) > 0);
    CHECK(agrees(edited(200, [](Index i, auto&, auto& value) {
            if (i % 2) value = {1e-20f, 0, 0};
          })) > 0);
  }
  SUBCASE("few tokens") {
    for (const Index n : {1, 2, 3, 9}) CHECK(agrees(first_tokens(usual, n)) > 0);
  }
  SUBCASE("long keys") {
    CHECK(agrees(edited(200, [](Index, auto& key, auto&) {
            for (float& x : key) x *= 1000;
          })) > 0);
  }
}

TEST_CASE("Algorithm 1 by the rules of the paper passes every check that takes a function") {
  const Subject subject = subgen_subject(400);
  const Judged judged(subject, [](CheckContext& context) { run_subgen_rules(context, {}); });
  CHECK(judged.none_violated());
  std::map<std::string, int> rows;
  for (const CheckRow& row : judged.rows()) rows[row.check] += 1;
  CHECK(rows.size() == 6);
}

TEST_CASE("every fault of SubGen is found by its exact rows, and all but one by a law or a bound too") {
  const Subject subject = subgen_subject(400);
  const std::vector<Mutant> mutants = subgen_mutants();
  CHECK(mutants.size() >= 10);
  for (const Mutant& mutant : mutants) {
    CAPTURE(mutant.id);
    const Judged judged(subject, mutant.run);
    std::map<bool, int> faults;
    for (const CheckRow& row : judged.rows()) faults[row.check == "subgen.algorithm1"] += is_fault(row);
    CHECK(faults[true] > 0);
    // Neither lemma says that M and D are independent of each other, and no bound needs it.
    CHECK((faults[false] > 0) == (mutant.id != "subgen.shared-draws"));
  }
}
