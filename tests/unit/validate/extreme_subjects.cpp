// SPDX-License-Identifier: Apache-2.0
// All checks of a paper on subjects with extreme keys, values and queries.
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/validate/all_checks.hpp>
#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::validate;
using namespace kvbench::testing;

TEST_CASE("keys whose exponentials overflow give bounds that are numbers or infinite, and no fault") {
  CheckRun run(20);
  Subject subject = synthetic("short-keys", 3, run.backend());
  for (float& x : subject.keys) x *= 300;
  for (float& x : subject.queries) x *= 150;
  subject.head.keys = run.backend().adopt(std::vector(subject.keys), subject.tokens(), subject.d());
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
  const auto backend = make_cpu_backend();
  std::vector<Subject> subjects;
  subjects.push_back(make_subject({.name = "one", .keys = {1}, .values = {1}, .queries = {1}}, *backend));
  subjects.push_back(make_subject({.name = "zero values", .keys = {1, 2}, .values = {0, 0}, .queries = {1}}, *backend));
  subjects.push_back(
      make_subject({.name = "zero query", .keys = {1, 2, 3}, .values = {0, 1, 1}, .queries = {0}}, *backend));
  subjects.push_back(make_subject(
      {.name = "equal keys", .keys = std::vector(40, 1.0f), .values = std::vector(40, 1.0f), .queries = {1}},
      *backend));
  for (const Subject& subject : subjects) {
    for (const Check* check : find_checks(all_checks(), {"subgen"}, {})) {
      if (check->scope != Scope::head) continue;
      INFO(subject.source << " " << check->id);
      try {
        const Judged judged(*backend, subject, check->run, 20);
        CHECK(judged.none_violated());
      } catch (const Unavailable&) {
      } catch (const Infeasible&) {
      }
    }
  }
}
