// SPDX-License-Identifier: Apache-2.0
// The exact pass agrees with its recomputation in fp64 on ordinary and extreme subjects; planted faults are found.
#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

#include <kvbench/bounds/check/synthetic.hpp>
#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Judged checked(Backend& backend, const Subject& subject) { return {backend, subject, exact_noise_floor().run}; }

}  // namespace

TEST_CASE("the exact pass is exact attention within the bound, on every back end and stream") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    for (const SubjectSource& source : synthetic_subjects(8)) {
      CAPTURE(source.name);
      const Judged judged = checked(*backend, source.load(*backend));
      REQUIRE(judged.rows().size() == 2);
      CHECK(judged.none_violated());
      for (const CheckRow& row : judged.rows()) {
        CHECK(row.trials == 8);
        CHECK(row.measured > 0);
      }
    }
  }
}

TEST_CASE("subjects of one token, of zeros and of large logits give rows without a fault") {
  const auto backend = make_cpu_backend();
  std::vector<Subject> subjects;
  subjects.push_back(make_subject({.name = "one", .keys = {1}, .values = {1}, .queries = {1}}, *backend));
  subjects.push_back(make_subject({.name = "zero values", .keys = {1, 2}, .values = {0, 0}, .queries = {1}}, *backend));
  subjects.push_back(
      make_subject({.name = "tiny", .keys = {1e-30f, 1}, .values = {1e-40f, 1e-39f}, .queries = {1e-20f}}, *backend));
  subjects.push_back(
      make_subject({.name = "far", .keys = {-200, 0, 300}, .values = {1, 2, 3}, .queries = {1, 7}}, *backend));
  subjects.push_back(make_subject(
      {.name = "more queries than tokens", .keys = {1, 2}, .values = {3, 4}, .queries = {1, 2, 3, 4, 5}}, *backend));
  for (const Subject& subject : subjects) {
    CAPTURE(subject.source);
    const Judged judged = checked(*backend, subject);
    CHECK(judged.none_violated());
    for (const CheckRow& row : judged.rows()) CHECK(row.trials == subject.num_queries());
  }
}

TEST_CASE("queries whose logits round by more than the bound allows are left out") {
  const auto backend = make_cpu_backend();
  const Subject subject =
      make_subject({.name = "huge", .keys = {-3e6f, 3e6f, 1}, .values = {1, 2, 3}, .queries = {1, 10}}, *backend);
  const Judged huge = checked(*backend, subject);
  CHECK(huge.rows()[0].verdict == Verdict::not_applicable);
  CHECK(huge.rows()[1].trials == 1);  // with a window of one token, the last query sees the last key alone
  const Judged none(*backend, make_subject({.name = "none", .keys = {1}, .values = {1}, .queries = {1}}, *backend),
                    [](CheckContext& context) {
                      Subject empty = *context.subject;
                      empty.queries.clear();
                      context.subject = &empty;
                      CHECK_THROWS_AS(check_exact_pass(context, replayed_exact_pass), Unavailable);
                    });
  CHECK(none.rows().empty());
}

TEST_CASE("every fault of the exact pass is found, by a wide margin") {
  const auto backend = make_cpu_backend();
  const Subject subject = subgen_subject(*backend, 400);
  const std::vector<Mutant> mutants = exact_mutants();
  CHECK(mutants.size() == 4);
  for (const Mutant& mutant : mutants) {
    CAPTURE(mutant.id);
    const Judged judged(*backend, subject, mutant.run);
    CHECK(judged.verdict("with a sliding window") == Verdict::violated);
    CHECK(judged.rows().back().measured > 3);
    if (mutant.id != "exact.window") CHECK(judged.verdict("all tokens") == Verdict::violated);
  }
}
