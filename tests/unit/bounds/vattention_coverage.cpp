// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/vattention/coverage.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/distributions.hpp>

#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::testing;

namespace {

/// Queries of 1 to keys with the quantiles of a normal law: exp(logit) has 1.3 times its mean as deviation.
Subject normal_logits(Backend& backend) {
  std::vector<float> keys;
  for (int j = 0; j < 1024; ++j) keys.push_back(static_cast<float>(normal_quantile((j * 389 % 1024 + 0.5) / 1024)));
  return make_subject({.name = "normal",
                       .keys = keys,
                       .values = std::vector<float>(1024, 1),
                       .queries = std::vector<float>(8, 1),
                       .d = 1,
                       .dv = 1},
                      backend);
}

}  // namespace

// Keys of zero have equal shares: 8 of 32 tokens give a quarter of D, and all of it with the weight 4.
TEST_CASE("errors of a denominator are those of its entries") {
  const auto backend = make_ref_backend();
  const Subject subject = make_subject({.name = "test",
                                        .keys = std::vector<float>(32, 0),
                                        .values = std::vector<float>(32, 1),
                                        .queries = {1, 2},
                                        .d = 1,
                                        .dv = 1},
                                       *backend);
  const auto errors_of = [&](const MethodUnderTest& method) {
    return DenominatorErrors(subject, method, *backend)(8, 0);
  };
  CHECK(errors_of(registered_method("sink", {{"reposition", "false"}})) == std::vector<double>{0.75, 0.75});
  CHECK(errors_of(registered_method("uniform"))[0] == doctest::Approx(0));
}

// For eps = 0.1 the samples are those of a quarter of the deviation that 0.2 allows; for 0.8 they are a first sample of
// about 10, whose deviation is 1.3 / sqrt 10 of what is not exact.
TEST_CASE("the coverage of vattention is judged, and too few samples are found") {
  const auto backend = make_cpu_backend();
  const Subject subject = normal_logits(*backend);
  CheckRun run(60);
  const auto row_with = [&](const char* eps) {
    const auto method = registered_method(
        "vattention", {{"samples", "beyond"}, {"eps", eps}, {"delta", "0.1"}, {"base", "0.01"}, {"repeats", "each"}});
    return run([&](CheckContext& context) { check_coverage(context, "test", 0.2, 0.1, method); }, &subject).front();
  };
  const CheckRow right = row_with("0.1"), wrong = row_with("0.8");
  CHECK(right.verdict == Verdict::supported);
  CHECK(wrong.verdict == Verdict::contradicted);
  CHECK(wrong.measured > 0.1);
  CHECK(right.units == 480);
}
