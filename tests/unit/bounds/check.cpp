// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check.hpp>

#include <doctest/doctest.h>

using namespace kvbench;

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

TEST_CASE("failures within the allowed probability are consistent, more are a violation") {
  CHECK(verdict(theorem(0)) == Verdict::consistent);
  CHECK(verdict(theorem(40)) == Verdict::consistent);  // just what is granted
  CHECK(verdict(theorem(58)) == Verdict::consistent);  // p = 0.002: more, but not beyond chance
  CHECK(verdict(theorem(80)) == Verdict::violated);
}

TEST_CASE("a bound above the trivial one is vacuous for any number of failures") {
  CheckRow row = theorem(400);
  row.bound = 1.5;
  CHECK(verdict(row) == Verdict::vacuous);
}

TEST_CASE("violated assumptions and missing figures give no verdict") {
  CheckRow row = theorem(400);
  row.assumptions = false;
  CHECK(verdict(row) == Verdict::not_applicable);
  CHECK(verdict(CheckRow{.kind = CheckKind::theorem}) == Verdict::not_applicable);
  CHECK(verdict(CheckRow{.kind = CheckKind::data}) == Verdict::consistent);
  CHECK(verdict(CheckRow{.kind = CheckKind::claim}) == Verdict::untestable);
}

TEST_CASE("one failure of a deterministic statement is a fault") {
  CheckRow row{.kind = CheckKind::exact};
  row.trials = 1000;
  row.failures = 1;
  row.allowed = 0;
  CHECK(verdict(row) == Verdict::violated);
  row.failures = 0;
  CHECK(verdict(row) == Verdict::consistent);
}

TEST_CASE("Holm adjusts over the run, separately for faults and for each claim") {
  std::vector<CheckRow> rows(10, CheckRow{.kind = CheckKind::law});
  for (CheckRow& row : rows) row.p_value = 0.5;
  rows[0].p_value = 3e-4;  // significant alone, but not among ten rows
  for (const char* claim : {"a", "b", "b"}) rows.push_back({.claim = claim, .kind = CheckKind::claim, .p_value = 0.03});
  rows.back().holds = true;
  judge(rows, 1e-3);
  CHECK(rows[0].p_adjusted == doctest::Approx(3e-3));
  CHECK(rows[0].verdict == Verdict::consistent);
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
