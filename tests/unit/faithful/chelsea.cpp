// SPDX-License-Identifier: Apache-2.0
// The recomputation of chelsea by hand, against the method on adverse inputs, and with planted faults.
#include <kvbench/bounds/chelsea/checks.hpp>
#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>

#include <doctest/doctest.h>

#include <kvbench/bounds/check/vectors.hpp>

#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

double normal(std::uint32_t row, std::uint32_t col, std::uint32_t part) {
  return standard_normal(philox4x32({{row, col, part, 0}}, {18, 5}));
}

/// Random keys and values; key(i) replaces the keys.
template <class F>
Subject stream_of(std::uint32_t n, std::uint32_t d, F key) {
  std::vector<float> keys, values, queries(d, 1.0F);
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t c = 0; c < d; ++c) {
      keys.push_back(static_cast<float>(key(i, c)));
      values.push_back(static_cast<float>(normal(i, c, 1)));
    }
  }
  return make_subject(
      {.name = "test", .keys = keys, .values = values, .queries = queries, .d = d, .dv = d, .scale = 0.5F}, cpu());
}
Subject random_stream(std::uint32_t n) {
  return stream_of(n, 8, [](std::uint32_t i, std::uint32_t c) { return normal(i, c, 0); });
}

ChelseaEntry token(std::vector<double> key, double value) { return {.key = std::move(key), .value = {value}}; }

/// The number of snapshots that the recomputation decides, and with which the method agrees.
std::int64_t agreeing(const Subject& subject, const StreamPlan& plan, const ChelseaSettings& settings) {
  const auto rows = judged_rows(&subject, [&](CheckContext& context) {
    add_oracle_row(context, "", "", observe_stream(subject, plan, registered_chelsea()(settings), cpu()),
                   chelsea_oracle(subject, plan, settings));
  });
  INFO(rows[0].text);
  CHECK(rows[0].failures.value_or(0) == 0);
  return rows[0].trials.value_or(0);
}

}  // namespace

// One chunk of four: A = {0, 2}, B = {1, 3}. cos(0, 1) = 0.8 and cos(2, 3) = 4 / sqrt(2.9^2 + 4^2) = 0.8096 are the
// best edges of A. A budget of 3 keeps the better one, that of tokens 2 and 3.
TEST_CASE("one round by hand") {
  const std::vector<ChelseaEntry> context = {
      {.id = 0, .key = {5, 0}, .value = {1}},
      {.id = 1, .key = {4, 3}, .value = {3}},
      {.id = 2, .key = {0, 1}, .value = {7}},
      {.id = 3, .key = {2.9, 4}, .value = {9}},
  };
  ChelseaOracle cache({.sinks = 0, .recent = 0, .chunk = 4, .slack = 0}, {}, 3, context);
  CHECK(cache.decided());
  Snapshot held = cache.snapshot();
  REQUIRE(held.held.size() == 3);
  CHECK(held.held[0].id == 0);
  CHECK(held.held[1].id == 1);
  CHECK(held.held[2].id == 3);
  CHECK(held.held[2].den == 2);
  CHECK(held.held[2].key == std::vector<double>{1.45, 2.5});
  CHECK(held.held[2].value == std::vector<double>{8});
  // A decoded token exceeds the budget of 3. A = {0, cluster}, B = {1, new}: cos(cluster, new) = 1 is the best edge,
  // and degrees add up.
  cache.append(token({2.9, 5}, 2));
  held = cache.snapshot();
  REQUIRE(held.held.size() == 3);
  CHECK(held.tokens == 5);
  CHECK(held.held[2].id == 4);
  CHECK(held.held[2].den == 3);
  CHECK(held.held[2].key[1] == Approx((2 * 2.5 + 5) / 3));
  CHECK(held.held[2].value[0] == Approx((2 * 8 + 2) / 3.0));
}

TEST_CASE("a tie between different tokens is not decided, one between equal tokens is") {
  const auto cache = [](std::vector<double> second) {
    return ChelseaOracle({.sinks = 0, .recent = 0, .chunk = 4, .slack = 0}, {}, 3,
                         {{.id = 0, .key = {5, 0}, .value = {1}},
                          {.id = 1, .key = {4, 3}, .value = {1}},
                          {.id = 2, .key = {-1, 0}, .value = {1}},
                          {.id = 3, .key = std::move(second), .value = {1}}});
  };
  CHECK_FALSE(cache({4, -3}).decided());
  CHECK(cache({4, 3}).decided());
  CHECK(cache({4, 3}).snapshot().held[0].id == 1);
}

TEST_CASE("the method agrees with its recomputation on adverse inputs") {
  const ChelseaSettings plain{.sinks = 2, .recent = 3, .chunk = 6, .slack = 2};
  const StreamPlan plan{.prompt = 50, .appended = 30, .budget = 20};
  const Subject random = random_stream(80);
  SUBCASE("a last chunk of one, two, three tokens") {
    for (const Index prompt : {48, 49, 50, 51}) {
      CHECK(agreeing(random, {.prompt = prompt, .appended = 20, .budget = 20}, plain) == 21);
    }
  }
  SUBCASE("equal keys") {
    const Subject equal = stream_of(80, 8, [](std::uint32_t, std::uint32_t c) { return normal(0, c, 0); });
    CHECK(agreeing(equal, {.prompt = 50, .budget = 40}, plain) == 1);
  }
  SUBCASE("pairs of equal keys") {
    const Subject pairs = stream_of(80, 8, [](std::uint32_t i, std::uint32_t c) { return normal(i / 2, c, 0); });
    CHECK(agreeing(pairs, {.prompt = 50, .budget = 27}, {.sinks = 1, .recent = 3, .chunk = 6, .slack = 2}) >= 1);
  }
  SUBCASE("a token of zeros") {
    const auto key = [](std::uint32_t i, std::uint32_t c) { return i == 11 ? 0 : normal(i, c, 0); };
    CHECK(agreeing(stream_of(80, 8, key), plan, plain) == 31);
  }
  SUBCASE("one token, budgets of one and two, no overflow") {
    CHECK(agreeing(random, {.prompt = 1, .budget = 1}, plain) == 1);
    CHECK(agreeing(random, {.prompt = 1, .appended = 9, .budget = 1}, plain) == 10);
    CHECK(agreeing(random, {.prompt = 30, .appended = 9, .budget = 2}, plain) == 10);
    CHECK(agreeing(random, {.prompt = 30, .appended = 9, .budget = 100}, plain) == 10);
  }
  SUBCASE("an empty context") { CHECK(agreeing(random, {.appended = 80, .budget = 12}, plain) == 81); }
  SUBCASE("falling shares and A before B") {
    const ChelseaSettings slow{
        .sinks = 1, .recent = 5, .chunk = 5, .slack = 4, .ratio = 0.29, .decay = 0.1, .concat = true};
    CHECK(agreeing(random, plan, slow) == 31);
  }
}

TEST_CASE("the recomputation in place of the method passes the checks that faults are given to") {
  const Subject subject = random_stream(400);
  const ChelseaUnderTest faultless = chelsea_with({});
  const std::vector<CheckRow> rows = judged_rows(&subject, [&](CheckContext& context) {
    check_chelsea_algorithm(context, faultless);
    check_chelsea_bias(context, faultless({}));
    check_method_sides(context, faultless);
  });
  CHECK(rows.size() > 12);
  check_no_fault(rows);
}

TEST_CASE("the method passes, and every fault is caught") {
  const Subject subject = random_stream(400);
  for (const CheckRow& row : judged_rows(&subject, chelsea_algorithm().run)) {
    CAPTURE(row.part);
    CAPTURE(row.text);
    CHECK(row.kind == CheckKind::exact);
    CHECK(row.trials.value_or(0) > 0);
    CHECK_FALSE(is_fault(row));
  }
  const std::vector<Mutant> mutants = chelsea_mutants();
  CHECK(mutants.size() >= 6);
  for (const Mutant& mutant : mutants) {
    bool caught = false;
    for (const CheckRow& row : judged_rows(&subject, mutant.run)) {
      caught |= is_fault(row) && row.check == "chelsea.algorithm";
    }
    CAPTURE(mutant.id);
    CHECK(caught);
  }
}
