// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/evidence/check_row.hpp>

#include <doctest/doctest.h>

#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;

namespace {

/// A theorem that may fail in 10 % of 400 seeds.
CheckRow theorem(std::int64_t failures) {
  CheckRow row;
  row.bound = 0.5;
  row.trivial = 1;
  row.failures = failures;
  row.trials = 400;
  row.allowed = 0.1;
  return row;
}

Verdict verdict(CheckRow row) {
  judge({&row, 1}, 1e-3);
  return row.verdict;
}

}  // namespace

TEST_CASE("failures within the allowed probability hold, clearly fewer hold with margin, more are a violation") {
  CHECK(verdict(theorem(0)) == Verdict::holds_with_margin);
  CHECK(verdict(theorem(40)) == Verdict::holds);  // just what is granted
  CHECK(verdict(theorem(58)) == Verdict::holds);  // p = 0.002: more, but not beyond chance
  CHECK(verdict(theorem(80)) == Verdict::violated);
}

TEST_CASE("a bound above the trivial one is vacuous, unless it fails more often than allowed") {
  CheckRow row = theorem(40);
  row.bound = 1.5;
  CHECK(verdict(row) == Verdict::vacuous);
  row.failures = 400;
  CHECK(verdict(row) == Verdict::violated);
}

TEST_CASE("failures of a bound that is not a number are no failures") {
  CheckRow row = theorem(400);
  row.bound = NAN;
  judge({&row, 1}, 1e-3);
  CHECK(row.verdict == Verdict::not_applicable);
  CHECK(row.text == "the bound is not a number");
}

// 0.1^k <= 1e-3 requires k = 3 trials, and 4 for one of two rows or queries.
TEST_CASE("a row states the smallest p-value and failure rate that it could show, or the trials that it lacks") {
  CheckRow row = theorem(0);
  row.trials = 3;
  judge({&row, 1}, 1e-3);
  CHECK(row.p_least == doctest::Approx(1e-3));
  CHECK(std::pow(row.detects, 3) == doctest::Approx(0.8));  // all three trials must fail
  CHECK(row.verdict == Verdict::holds);
  row = theorem(0);
  row.trials = 3, row.tests = 2;
  judge({&row, 1}, 1e-3);
  CHECK(row.p_least == doctest::Approx(2e-3));
  CHECK(row.verdict == Verdict::not_applicable);
  CHECK(row.text == "3 trials cannot show a violation at this level; at least 4 are needed");
  CheckRow exact{.kind = CheckKind::exact, .failures = 0, .trials = 10, .allowed = 0};
  judge({&exact, 1}, 1e-3);
  CHECK(exact.p_least == 0);
  CHECK(std::pow(1 - exact.detects, 10) == doctest::Approx(0.2));  // one failure is enough
}

TEST_CASE("claims of too few units are undecided and state how many they need") {
  std::vector<CheckRow> rows(
      2, CheckRow{.check = "a", .kind = CheckKind::claim, .p_value = 0.0625, .holds = true, .units = 5});
  for (CheckRow& row : rows) row.p_least = 0.0625;
  judge(rows, 1e-3);
  CHECK(rows[0].verdict == Verdict::undecided);
  CHECK(rows[0].units_needed == 7);  // 2 / 2^7 <= 0.05 / 2
  CHECK(rows[0].text == "5 units give no p-value below 0.062; at least 7 are needed for 2 rows");
}

TEST_CASE("violated assumptions and missing figures give no verdict") {
  CheckRow row = theorem(400);
  row.assumptions = false;
  CHECK(verdict(row) == Verdict::not_applicable);
  CHECK(verdict(CheckRow{.kind = CheckKind::theorem}) == Verdict::not_applicable);
  CHECK(verdict(CheckRow{.kind = CheckKind::data}) == Verdict::none);
  CHECK(verdict(CheckRow{.kind = CheckKind::claim}) == Verdict::untestable);
}

TEST_CASE("one failure of a deterministic statement is a fault") {
  CheckRow row{.kind = CheckKind::exact};
  row.trials = 1000;
  row.failures = 1;
  row.allowed = 0;
  CHECK(verdict(row) == Verdict::violated);
  row.failures = 0;
  CHECK(holds(verdict(row)));
}

TEST_CASE("the builder of a kind sets what its verdict needs") {
  const std::vector<CheckRow> rows = testing::CheckRun(1)([](CheckContext& context) {
    context.law({"two tests", "k=2"}, 2 * 0.8, "a ratio", 0.9);
    context.exact({"one exception"}, 1, 10);
    context.theorem({"a bound alone"}, {.bound = 2, .trivial = 1});
    context.theorem({"no failure"}, {.bound = 0.5, .trivial = 1}, "", {0, 400, 0.1});
    context.data({"a number"}, {.measured = 3});
    context.claim({"the other way"}, decide_between(0.9, 1e-6), "");
    context.cost({"as stated"}, 2, 2, "");
    context.cost({"no number"}, NAN, 2, "");
    context.cost_order({"once out of order"}, 1, 4, 0.5, "");
    context.not_tested(CheckKind::exact, {"no case"}, "the reason");
  });
  std::vector<Verdict> verdicts;
  for (const CheckRow& row : rows) verdicts.push_back(row.verdict);
  CHECK(verdicts == std::vector{Verdict::holds, Verdict::violated, Verdict::vacuous, Verdict::holds_with_margin,
                                Verdict::none, Verdict::contradicted, Verdict::holds, Verdict::violated,
                                Verdict::violated, Verdict::not_applicable});
  CHECK(rows[0].params == "k=2");
  CHECK(rows[0].p_value == 1);
  CHECK(rows[0].bound == 1);
  CHECK(rows.back().text == "the reason");
}

TEST_CASE("Holm adjusts over the run, separately for faults and for each claim") {
  std::vector<CheckRow> rows(10, CheckRow{.kind = CheckKind::law});
  for (CheckRow& row : rows) row.p_value = 0.5;
  rows[0].p_value = 3e-4;  // significant alone, but not among ten rows
  for (const char* claim : {"a", "b", "b"}) rows.push_back({.check = claim, .kind = CheckKind::claim, .p_value = 0.03});
  rows.back().holds = true;
  judge(rows, 1e-3);
  CHECK(rows[0].p_adjusted == doctest::Approx(3e-3));
  CHECK(holds(rows[0].verdict));
  CHECK(rows[10].p_adjusted == 0.03);
  CHECK(rows[10].verdict == Verdict::contradicted);
  CHECK_FALSE(is_fault(rows[10]));
  CHECK(rows[11].p_adjusted == 0.06);
  CHECK(rows[11].verdict == Verdict::undecided);
  rows[11].p_value = rows[12].p_value = 0.02;
  judge(rows, 1e-3);
  CHECK(rows[11].verdict == Verdict::contradicted);
  CHECK(rows[12].verdict == Verdict::supported);
  rows[0].p_value = 1e-5;
  judge(rows, 1e-3);
  CHECK(is_fault(rows[0]));
}
