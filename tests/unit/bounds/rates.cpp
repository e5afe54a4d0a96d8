// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/rates.hpp>

#include <cmath>
#include <random>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::bounds;
using doctest::Approx;

TEST_CASE("the interval of a quantile lies between order statistics") {
  // 1 .. 100 and q = 1/2: P(B < 40) = 1.76 % and P(B < 41) = 2.84 %, so ranks 40 and, by symmetry, 61.
  std::vector<double> numbers;
  for (int i = 100; i >= 1; --i) numbers.push_back(i);
  const QuantileEstimate median = estimate_quantile(numbers, 0.5);
  CHECK(median.value == Approx(50.5));
  CHECK(median.interval.lo == 40);
  CHECK(median.interval.hi == 61);
  // With ten numbers no rank bounds the 90 % quantile from above: P(B >= 10) = 35 %.
  const QuantileEstimate few = estimate_quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9);
  CHECK(std::isinf(few.interval.hi));
  CHECK(few.interval.lo == 7);
}

TEST_CASE("the rate of errors that fall like one over the root of the size") {
  std::mt19937_64 engine(2);
  std::normal_distribution<> normal;
  const std::vector<double> sizes = {4, 16, 64};
  std::vector<std::vector<double>> errors;
  for (const double size : sizes) {
    std::vector<double>& at = errors.emplace_back();
    for (int seed = 0; seed < 400; ++seed) at.push_back(normal(engine) / std::sqrt(size));
  }
  const Rate rate = error_rate(sizes, errors);
  CHECK(rate.slope == Approx(-0.5).epsilon(0.1));
  CHECK(rate.interval.lo <= -0.5);
  CHECK(rate.interval.hi >= -0.5);
  CHECK(std::isnan(error_rate(sizes, std::vector<std::vector<double>>(3, std::vector<double>(16, 0.0))).slope));
}

TEST_CASE("the size from which on a bound is informative") {
  const auto ratio = [](Index n) { return 300.0 / static_cast<double>(n); };
  CHECK(informative_size(2048, ratio).n == 512);
  const InformativeSize later = informative_size(128, ratio);
  CHECK(later.n == 0);
  CHECK(later.needed > 300);
  CHECK(later.needed < 500);
}

TEST_CASE("the largest constant of a claim is named") {
  std::vector<CheckRow> rows(3);
  for (std::size_t i = 0; i < 3; ++i) {
    rows[i].check = "a", rows[i].part = constant_part, rows[i].measured = static_cast<double>(i % 2);
  }
  name_largest_constants(rows);
  CHECK(rows[0].text.empty());
  CHECK(rows[1].text == "; the largest of 3 subjects and sizes");
}
