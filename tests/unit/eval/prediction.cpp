// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/prediction.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::eval;

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

PredictionRow row(const char* method, const char* budget, std::vector<double> error, std::vector<double> damage) {
  return {method, budget, std::move(error), std::move(damage)};
}

}  // namespace

TEST_CASE("correlation over configurations, agreement over pairs of methods at the same budget") {
  // Means: a 1 -> 1, b 2 -> 3, c 3 -> 2 at one budget; a 0.5 -> 0.5 at the other.
  const PredictionGroup group{"text",
                              {row("a", "25%", {1, 1}, {1, 1}), row("b", "25%", {1, 3}, {2, 4}),
                               row("c", "25%", {3, 3}, {2, 2}), row("a", "50%", {0.5, 0.5}, {0.5, 0.5})}};
  const Prediction p = predict({&group, 1});
  CHECK(p.configurations == 4);
  CHECK(p.documents == 2);
  CHECK(p.pairs == 3);
  CHECK(p.agreement == doctest::Approx(2.0 / 3));
  CHECK(p.spearman == doctest::Approx(0.8));  // ranks 2 3 4 1 and 2 4 3 1
  // Without a: one pair, which disagrees. Without b or c: pairs that agree.
  CHECK(p.agreement_without_one.lo == 0);
  CHECK(p.agreement_without_one.hi == 1);
  CHECK(p.spearman_without_one.hi == doctest::Approx(1));
  CHECK(p.agreement_interval.lo <= p.agreement);
  CHECK(p.agreement <= p.agreement_interval.hi);
}

TEST_CASE("ties: equal errors are half a pair, equal damage is none; missing values are left out") {
  const PredictionGroup group{"text",
                              {row("a", "25%", {1, missing}, {1, 9}), row("b", "25%", {1, 1}, {2, 2}),
                               row("c", "25%", {2, 2}, {2, 2}), row("d", "25%", {missing, missing}, {1, 1})}};
  const Prediction p = predict({&group, 1});
  CHECK(p.configurations == 3);
  CHECK(p.pairs == 2);  // a-b, a-c
  CHECK(p.agreement == doctest::Approx(0.75));
}

TEST_CASE("damage of different tasks is not compared") {
  const PredictionGroup groups[] = {
      {"text", {row("a", "1", {1}, {1}), row("b", "1", {2}, {2}), row("c", "1", {3}, {3})}},
      {"passkey", {row("a", "1", {1}, {103}), row("b", "1", {2}, {102}), row("c", "1", {3}, {101})}}};
  const Prediction p = predict(groups);
  CHECK(p.spearman == doctest::Approx(0));
  CHECK(p.agreement == doctest::Approx(0.5));
  CHECK(p.pairs == 6);
  CHECK(std::isnan(p.agreement_interval.lo));  // one document of each task
}

TEST_CASE("equal calls give equal intervals, and documents that disagree widen them") {
  PredictionGroup group{"text", {}};
  for (int m = 0; m < 6; ++m) {
    const double x = m;
    group.rows.push_back(row(std::string(1, static_cast<char>('a' + m)).c_str(), "1", {x, x, x, x}, {x, x, 5 - x, x}));
  }
  const Prediction once = predict({&group, 1}), again = predict({&group, 1});
  CHECK(once.spearman_interval.lo == again.spearman_interval.lo);
  CHECK(once.spearman == doctest::Approx(1));
  CHECK(once.spearman_interval.lo < 1);
  CHECK(std::isnan(predict({}).spearman));
}

TEST_CASE("amplification relates drift to all that was added so far") {
  // Added 3 and 4: 5 together.
  const std::vector<double> factor = amplification(std::vector{3.0, 10.0, 10.0}, std::vector{3.0, 4.0, missing});
  CHECK(factor[0] == doctest::Approx(1));
  CHECK(factor[1] == doctest::Approx(2));
  CHECK(factor[2] == doctest::Approx(2));
  CHECK(std::isnan(amplification(std::vector{1.0}, std::vector{0.0})[0]));
}

TEST_CASE("additivity is the ratio of sums, with an interval over documents") {
  const Additivity a = additivity(std::vector{1.0, 2.0, 3.0}, std::vector{2.0, 4.0, 6.0});
  CHECK(a.ratio == doctest::Approx(0.5));
  CHECK(a.interval.lo == doctest::Approx(0.5));
  CHECK(a.interval.hi == doctest::Approx(0.5));
  CHECK(std::isnan(additivity(std::vector{1.0}, std::vector{0.0}).ratio));
  CHECK(std::isnan(additivity(std::vector{1.0}, std::vector{2.0}).interval.lo));
}
