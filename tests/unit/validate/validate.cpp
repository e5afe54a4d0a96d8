// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/validate/validate.hpp>

#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;
using namespace kvbench::validate;

namespace {

/// A claim with a fixed number of failed seeds on every subject.
Check counted(std::string id, Scope scope, std::int64_t failures) {
  return {.id = std::move(id), .scope = scope, .run = [failures](CheckContext& context) {
            context.theorem({"counted"}, {.bound = 1}, "", {failures, context.options.seeds, 0.1});
          }};
}

}  // namespace

TEST_CASE("claims run on every subject, in order, whatever the number of threads") {
  const auto subjects = synthetic_subjects(2);
  const Check per_head = counted("a", Scope::head, 0), once = counted("b", Scope::once, 0),
              trace = counted("c", Scope::trace, 0);
  const Check* const claims[] = {&per_head, &once, &trace};
  for (const int threads : {1, 4}) {
    FinishedRows finished;
    validate::validate(claims, subjects, nullptr, {.threads = threads}, finished);
    const std::vector<CheckRow> rows = finished.judged(0.01);
    REQUIRE(rows.size() == subjects.size() + 1);  // no trace, so no row of `c`
    for (std::size_t i = 0; i < subjects.size(); ++i) CHECK(rows[i].source == subjects[i].name);
    CHECK(rows.back().check == "b");
  }
}

TEST_CASE("a check that cannot run gives a row with the reason") {
  const Check claim{.id = "x", .scope = Scope::once, .run = [](CheckContext&) { throw Unavailable("no data"); }};
  const Check* const claims[] = {&claim};
  FinishedRows finished;
  validate::validate(claims, {}, nullptr, {}, finished);
  const std::vector<CheckRow> rows = finished.judged(0.01);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].verdict == Verdict::not_applicable);
  CHECK(rows[0].text == "no data");
}

TEST_CASE("an interruption keeps finished rows") {
  std::atomic<bool> stop = false;
  const Check good = counted("good", Scope::once, 0);
  const Check stopping{.id = "stopping", .scope = Scope::once, .run = [&](CheckContext& context) {
                         context.data({"unfinished"}, {});
                         stop = true;
                         context.poll();
                       }};
  const Check* const claims[] = {&good, &stopping, &good};
  FinishedRows finished;
  CHECK_THROWS_AS(validate::validate(claims, {}, nullptr, {.threads = 1}, finished, {.stop = &stop}), Interrupted);
  const std::vector<CheckRow> rows = finished.judged(0.01);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].check == "good");
  CHECK(holds(rows[0].verdict));
}

TEST_CASE("synthetic streams are reproducible and have their stated length") {
  for (const SubjectSource& source : synthetic_subjects(3)) {
    const Subject a = source.load(cpu()), b = source.load(cpu());
    CHECK(a.keys == b.keys);
    CHECK(a.num_queries() == 3);
    CHECK(static_cast<Index>(a.values.size()) == a.tokens() * a.dv());
    double square = 0;
    for (const float x : a.key(0)) square += double{x} * double{x};
    CHECK(std::isfinite(square));
    CHECK(square > 0);
  }
}

TEST_CASE("claims are found by id, prefix and method") {
  const std::span<const Check> all = all_checks();
  CHECK(find_checks(all, {}, {}).size() == all.size());
  CHECK_FALSE(find_checks(all, {"chelsea"}, {}).empty());
  CHECK(find_checks(all, {"chelsea.thm61"}, {}).size() == 1);
  CHECK_THROWS_AS(find_checks(all, {"chelsea.thm6"}, {}), Error);
  CHECK_THROWS_AS(find_checks(all, {}, {"nonsense"}), Error);
}

// All checks of a paper on subjects with extreme keys, values and queries.

TEST_CASE("keys whose exponentials overflow give bounds that are numbers or infinite, and no fault") {
  CheckRun run(20);
  Subject subject = synthetic("short-keys", 3);
  for (float& x : subject.keys) x *= 300;
  for (float& x : subject.queries) x *= 150;
  subject.head.keys = cpu().adopt(std::vector(subject.keys), subject.tokens(), subject.d());
  for (const Check* check : find_checks(all_checks(), {"balancekv", "subgen"}, {})) {
    if (check->scope != Scope::head || check->id == "balancekv.exponent") continue;  // greedy signs are all alike
    CAPTURE(check->id);
    for (const CheckRow& row : run(check->run, &subject)) {
      CAPTURE(row.part);
      CHECK_FALSE(is_fault(row));
      if (row.kind == CheckKind::theorem && row.failures) CHECK_FALSE(std::isnan(row.bound));
    }
  }
}

TEST_CASE("tiny and degenerate subjects give rows or a reason, and no violation") {
  std::vector<Subject> subjects;
  subjects.push_back(make_subject({.name = "one", .keys = {1}, .values = {1}, .queries = {1}}, cpu()));
  subjects.push_back(make_subject({.name = "zero values", .keys = {1, 2}, .values = {0, 0}, .queries = {1}}, cpu()));
  subjects.push_back(
      make_subject({.name = "zero query", .keys = {1, 2, 3}, .values = {0, 1, 1}, .queries = {0}}, cpu()));
  subjects.push_back(make_subject(
      {.name = "equal keys", .keys = std::vector(40, 1.0f), .values = std::vector(40, 1.0f), .queries = {1}}, cpu()));
  for (const Subject& subject : subjects) {
    for (const Check* check : find_checks(all_checks(), {"subgen"}, {})) {
      if (check->scope != Scope::head) continue;
      INFO(subject.source << " " << check->id);
      try {
        const Judged judged(subject, check->run, 20);
        CHECK(judged.none_violated());
      } catch (const Unavailable&) {
      } catch (const Infeasible&) {
      }
    }
  }
}
