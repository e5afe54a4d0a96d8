// SPDX-License-Identifier: Apache-2.0
// What quantisers guarantee holds on every stream and back end, also for extreme keys; planted faults are found.
#include <unit/bounds/judged.hpp>

#include <cmath>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

const std::vector<Check>& guarantees() {
  static const std::vector<Check> all = {qjl_unbiased(), turboquant_distortion(), rotation_products(),
                                         quantiser_half_step()};
  return all;
}

Subject of_rows(const char* name, std::vector<float> keys, Index d) {
  std::vector<float> values = keys, queries(keys.begin(), keys.begin() + d);
  return make_subject({.name = name,
                       .keys = std::move(keys),
                       .values = std::move(values),
                       .queries = std::move(queries),
                       .d = d,
                       .dv = d},
                      cpu());
}

}  // namespace

TEST_CASE("guarantees of quantisers hold on every back end and stream") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    for (const SubjectSource& source : synthetic_subjects(4)) {
      const Subject subject = source.load(*backend);
      for (const Check& check : guarantees()) {
        INFO(source.name << " " << check.id);
        const Judged judged(subject, check.run, 40, *backend);
        CHECK(judged.none_violated());
        for (const CheckRow& row : judged.rows())
          if (row.verdict != Verdict::not_applicable) CHECK(std::isfinite(row.measured));
      }
    }
  }
}

TEST_CASE("rows of zeros, of huge and of tiny numbers, and constant ones give rows or a reason, and no fault") {
  std::vector<Subject> subjects;
  subjects.push_back(of_rows("one channel", {1, 2, 3}, 1));
  subjects.push_back(of_rows("zeros", std::vector<float>(12), 4));
  subjects.push_back(of_rows("constant", std::vector<float>(12, 1), 4));
  subjects.push_back(of_rows("huge", {1e38f, -1e38f, 2, 0, 1, 2, 3, 4}, 4));
  subjects.push_back(of_rows("near the end of f16", {60000, -60000, 2, 0, 1, 2, 3, 4}, 4));
  subjects.push_back(of_rows("subnormal", {1e-40f, -1e-41f, 1e-30f, 0, 1e-7f, 1, 2, 1e-3f}, 4));
  subjects.push_back(of_rows("three channels", {1, 0, 0, 0, 1, 0, 1, 2, 3}, 3));
  for (const Subject& subject : subjects)
    for (const Check& check : guarantees()) {
      INFO(subject.source << " " << check.id);
      try {
        const Judged judged(subject, check.run, 40);
        CHECK(judged.none_violated());
      } catch (const Unavailable&) {
      }
    }
}

TEST_CASE("the bound of half a step is reached, and not far beyond what happens") {
  // Minimum 0, maximum 3, 2 bits: the step is 1, and 0.5 and 2.5 are half a step from 0 and 2.
  const Subject subject = of_rows("halves", {0, 0.5f, 2.5f, 3}, 4);
  const Judged judged(subject, quantiser_half_step().run);
  REQUIRE(judged.rows().size() == 10);
  CHECK(judged.rows()[0].trials == 8);
  CHECK(judged.rows()[0].measured == doctest::Approx(1).epsilon(0.004));
  CHECK(judged.verdict("q4_1") == Verdict::not_applicable);  // 4 channels are no block of ggml
}

TEST_CASE("the rows of turboquant state the bounds and the values of the paper") {
  const std::vector<SubjectSource> sources = synthetic_subjects(2);
  const Judged judged(sources[1].load(cpu()), turboquant_distortion().run, 100);
  REQUIRE(judged.rows().size() == 8);
  const double bounds[] = {0.6802, 0.1700, 0.04251, 0.01063}, values[] = {0.36, 0.117, 0.03, 0.009};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(judged.rows()[2 * i].bound == doctest::Approx(bounds[i]).epsilon(1e-3));
    CHECK(judged.rows()[2 * i + 1].bound == values[i]);
    CHECK(judged.rows()[2 * i].measured == doctest::Approx(values[i]).epsilon(0.2));
  }
}

TEST_CASE("an estimate without its factor is too small by that factor") {
  const Subject subject = synthetic_subjects(4)[1].load(cpu());
  CHECK(Judged(subject, qjl_unbiased().run).rows()[0].measured == doctest::Approx(1).epsilon(0.03));
  const Judged faulty(subject, quantiser_mutants()[0].run);
  CHECK(faulty.rows()[0].measured == doctest::Approx(0.79788).epsilon(0.03));  // sqrt(2 / pi)
}
