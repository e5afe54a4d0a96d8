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
  return {method, Budget::parse(budget), std::move(error), std::move(damage)};
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
  CHECK(p.all.pairs == 3);
  CHECK(p.all.share == doctest::Approx(2.0 / 3));
  CHECK(p.spearman == doctest::Approx(0.8));  // ranks 2 3 4 1 and 2 4 3 1
  // Without a: one pair, which disagrees. Without b or c: pairs that agree.
  CHECK(p.share_without_one.lo == 0);
  CHECK(p.share_without_one.hi == 1);
  CHECK(p.spearman_without_one.hi == doctest::Approx(1));
  CHECK(p.all.interval.lo <= p.all.share);
  CHECK(p.all.share <= p.all.interval.hi);
}

TEST_CASE("ties: equal errors are half a pair, equal damage is none; missing values are left out") {
  const PredictionGroup group{"text",
                              {row("a", "25%", {1, missing}, {1, 9}), row("b", "25%", {1, 1}, {2, 2}),
                               row("c", "25%", {2, 2}, {2, 2}), row("d", "25%", {missing, missing}, {1, 1})}};
  const Prediction p = predict({&group, 1});
  CHECK(p.configurations == 3);
  CHECK(p.all.pairs == 2);  // a-b, a-c
  CHECK(p.all.share == doctest::Approx(0.75));
}

TEST_CASE("damage of different tasks is not compared") {
  const PredictionGroup groups[] = {
      {"text", {row("a", "1", {1}, {1}), row("b", "1", {2}, {2}), row("c", "1", {3}, {3})}},
      {"passkey", {row("a", "1", {1}, {103}), row("b", "1", {2}, {102}), row("c", "1", {3}, {101})}}};
  const Prediction p = predict(groups);
  CHECK(p.spearman == doctest::Approx(0));
  CHECK(p.all.share == doctest::Approx(0.5));
  CHECK(p.all.pairs == 6);
  CHECK(std::isnan(p.all.interval.lo));  // one document of each task
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

TEST_CASE("close pairs are those within a factor of three of each other's damage") {
  // a-b and b-c differ by factors of 2 and 3, a-c by 6; only b-c is in the wrong order.
  const PredictionGroup group{"text", {row("a", "1", {1}, {1}), row("b", "1", {3}, {2}), row("c", "1", {2}, {6})}};
  const Prediction p = predict({&group, 1});
  CHECK(p.all.pairs == 3);
  CHECK(p.all.share == doctest::Approx(2.0 / 3));
  CHECK(p.close.pairs == 2);
  CHECK(p.close.share == doctest::Approx(0.5));
}

TEST_CASE("the difference of two metrics is that of their shares on the same documents, none for other pairs") {
  const PredictionGroup good{"text", {row("a", "1", {1, 1}, {1, 2}), row("b", "1", {2, 2}, {2, 3})}};
  const PredictionGroup bad{"text", {row("a", "1", {3, 3}, {1, 2}), row("b", "1", {2, 2}, {2, 3})}};
  const PredictionGroup more{
      "text", {row("a", "1", {3, 3}, {1, 2}), row("b", "1", {2, 2}, {2, 3}), row("c", "1", {2, 2}, {4, 4})}};
  const Prediction a = predict({&good, 1}), b = predict({&bad, 1});
  CHECK(difference(a.all, b.all).value == 1);
  CHECK(difference(a.all, b.all).interval.lo == 1);
  CHECK(difference(a.all, b.all).interval.hi == 1);
  CHECK(difference(a.all, b.all).p_value == doctest::Approx(2.0 / 1001));  // no resample is on the other side
  CHECK(difference(a.all, a.all).p_value == 1);
  CHECK(std::isnan(difference(a.all, predict({&more, 1}).all).value));
}

TEST_CASE("the ceiling is how damage on some documents orders that on others") {
  // Two documents agree on a < b and disagree on b against c: each half holds one of them.
  PredictionGroup group{"text", {row("a", "1", {}, {1, 1}), row("b", "1", {}, {5, 6}), row("c", "1", {}, {6, 5})}};
  CHECK(half_against_half({&group, 1}).all == doctest::Approx(2.0 / 3));
  CHECK(half_against_half({&group, 1}).close == 0);  // b against c
  const PredictionGroup texts[] = {
      {"text", {row("a", "1", {}, {1}), row("b", "1", {}, {5}), row("c", "1", {}, {6})}},
      {"text", {row("a", "1", {}, {10}), row("b", "1", {}, {60}), row("c", "1", {}, {50})}},
      {"passkey", {row("a", "1", {}, {9}), row("b", "1", {}, {2}), row("c", "1", {}, {1})}}};
  CHECK(group_against_group(texts).all == doctest::Approx(2.0 / 3));
  CHECK(group_against_group(texts).close == 0);
  CHECK(std::isnan(group_against_group({&group, 1}).all));
  CHECK(std::isnan(half_against_half(texts).all));  // one document each
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
