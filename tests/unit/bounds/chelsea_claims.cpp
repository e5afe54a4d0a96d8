// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/chelsea/checks.hpp>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/core/place_test.hpp>
#include <kvbench/kernels/philox.hpp>
#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

double noise(std::uint32_t row, std::uint32_t col) {
  const PhiloxBlock w = philox4x32({{row, col, 3, 0}}, {21, 4});
  return uniform52(w.x[0], w.x[1]) - 0.5;
}

/// 40 blocks whose curves are `shape` and a little noise.
LagCurves curves_of(const std::vector<double>& shape) {
  LagCurves curves;
  for (std::uint32_t b = 0; b < 40; ++b) {
    curves.push_back(shape);
    for (std::uint32_t l = 0; l < shape.size(); ++l) curves.back()[l] += 1e-4 * noise(b, l);
  }
  return curves;
}

template <class F>
std::vector<double> shape_of(F f) {
  std::vector<double> shape;
  for (int l = 1; l <= 63; ++l) shape.push_back(f(static_cast<double>(l)));
  return shape;
}

Verdict judged(const ShapeTest& test) {
  const auto add = [&](CheckContext& context) { context.claim({}, decide_between(test.p_for, test.p_against), ""); };
  return CheckRun(1)(add).front().verdict;
}

Subject clustered() {
  std::vector<float> keys, values, queries;
  for (std::uint32_t i = 0; i < 600; ++i) {
    for (std::uint32_t c = 0; c < 8; ++c) {
      keys.push_back(static_cast<float>(3 * noise(i % 7, c + 100) + 0.5 * noise(i, c)));
      values.push_back(static_cast<float>(noise(i, c + 50)));
    }
  }
  for (std::uint32_t i = 0; i < 24; ++i) queries.push_back(static_cast<float>(6 * noise(9000 + i, 0)));
  return make_subject(
      {.name = "test", .keys = keys, .values = values, .queries = queries, .d = 8, .dv = 8, .scale = 0.5F}, cpu());
}

}  // namespace

// Keys at angles 0, 60 and 120 degrees, repeated: cosines of neighbours 1/2, 1/2, -1/2 (from 120 to 0), and so on.
TEST_CASE("curves of blocks are means of cosines, independent of lengths") {
  std::vector<float> keys;
  for (int i = 0; i < 12; ++i) {
    const double angle = (i % 3) * 3.14159265358979 / 3, length = 1 + i;
    keys.push_back(static_cast<float>(length * std::cos(angle)));
    keys.push_back(static_cast<float>(length * std::sin(angle)));
  }
  const LagCurves curves = lag_curves(keys, 2, 3, 3, 100);
  REQUIRE(curves.size() == 3);
  for (const auto& curve : curves) {
    CHECK(curve[0] == Approx((0.5 + 0.5 - 0.5) / 3).epsilon(1e-5));
    CHECK(curve[1] == Approx((-0.5 + 0.5 + 0.5) / 3).epsilon(1e-5));
    CHECK(curve[2] == Approx(1));
  }
  CHECK(lag_curves(keys, 2, 12, 3, 100).empty());
  CHECK(lag_curves(keys, 2, 3, 3, 6).size() == 1);
}

TEST_CASE("a convex falling curve passes both tests, a rising one and a concave one do not") {
  const LagCurves good = curves_of(shape_of([](double l) { return 0.3 + 0.5 / l; }));
  CHECK(judged(test_shape(falls_by_octave(good), over_blocks)) == Verdict::supported);
  CHECK(judged(test_shape(falls_by_lag(good), over_blocks)) == Verdict::supported);
  CHECK(judged(test_shape(convex_by_octave(good), over_blocks)) == Verdict::supported);
  CHECK(judged(test_shape(convex_by_lag(good), over_blocks)) ==
        Verdict::undecided);  // at large lags the noise is larger than the curvature
  const LagCurves rising = curves_of(shape_of([](double l) { return 0.3 + 0.01 * l; }));
  CHECK(judged(test_shape(falls_by_octave(rising), over_blocks)) == Verdict::contradicted);
  CHECK(test_shape(falls_by_lag(rising), over_blocks).broken_surely == 62);
  const LagCurves concave = curves_of(shape_of([](double l) { return 0.9 - l * l / 8000; }));
  CHECK(judged(test_shape(falls_by_octave(concave), over_blocks)) == Verdict::supported);
  CHECK(judged(test_shape(convex_by_octave(concave), over_blocks)) == Verdict::contradicted);
}

// Over four units with means 1 and standard error 1/4 of one inequality, and mean -1 of the other: t = 4 with 3 degrees
// of freedom, whose p-value is 0.028.
TEST_CASE("a shape is tested by any test of its terms") {
  const double spread = 0.25 * std::sqrt(3);
  const std::vector<double> positive = {1 - spread, 1 - spread, 1 + spread, 1 + spread};
  std::vector<double> negative;
  for (const double x : positive) negative.push_back(-x);
  const auto over_places = [](std::span<const double> terms) {
    const PlaceTest test = place_test(terms, terms.size(), true);
    return TermTest{.mean = test.mean, .interval = test.interval, .p = test.p_value / 2};
  };
  const ShapeTest both = test_shape({positive, negative}, over_places);
  CHECK(both.broken == 1);
  CHECK(both.broken_surely == 1);
  CHECK(both.p_against == Approx(0.028).epsilon(0.01));
  CHECK(both.p_for == 1);
  CHECK(test_shape({positive}, over_places).p_for == Approx(0.014).epsilon(0.01));
}

TEST_CASE("a ripple violates single inequalities but not the trend") {
  const LagCurves ripple = curves_of(shape_of([](double l) { return 0.3 + 0.5 / l + 0.01 * std::cos(2 * l); }));
  CHECK(judged(test_shape(falls_by_octave(ripple), over_blocks)) == Verdict::supported);
  CHECK(judged(test_shape(falls_by_lag(ripple), over_blocks)) == Verdict::contradicted);
}

// 4, 2, 3, 1: the best decreasing fit pools 2 and 3; total 5, lost 0.5. The largest convex curve below 0, 1, 0 is 0:
// gap 1 of range 1.
TEST_CASE("distance of a curve from the nearest decreasing curve and from the largest convex curve below it") {
  CHECK(decreasing_r2({4, 2, 3, 1}) == Approx(0.9));
  CHECK(decreasing_r2({4, 3, 2, 1}) == Approx(1));
  CHECK(decreasing_r2({1, 2, 3}) == Approx(0));
  CHECK(convex_gap({0, 1, 0}) == Approx(1));
  CHECK(convex_gap({4, 2, 1, 0.5}) == Approx(0));
  CHECK(convex_gap({2, 2}) == 0);
}

TEST_CASE("chelsea's entries conserve keys and mass, and never have more than their tokens") {
  const Subject subject = clustered();
  const MassProblem problem = mass_problem(subject);
  for (const Index budget : {20, 75, 300, 700}) {
    const BiasCount count =
        count_bias(problem, mass_entries(problem, subject, budget, registered_method("chelsea"), cpu()));
    CAPTURE(budget);
    CHECK(count.broken_sums == 0);
    CHECK(count.broken_entries == 0);
    CHECK((budget < 600 ? count.log_ratio < 0 : count.log_ratio == Approx(0)));
    CHECK((budget < 600) == (count.merged > 0));
  }
}

// 600 tokens merged to 75: one degree too many, a logit 2 % too large, means without the degrees.
TEST_CASE("a wrong degree, a mis-scaled logit and an unweighted mean are violations") {
  const Subject subject = clustered();
  const MassProblem problem = mass_problem(subject);
  const MassEntries good = mass_entries(problem, subject, 75, registered_method("chelsea"), cpu());
  MassEntries degree = good, logit = good, mean = good;
  const auto merged = static_cast<std::size_t>(std::ranges::max_element(good.degrees) - good.degrees.begin());
  degree.degrees[merged] += 1;
  CHECK(count_bias(problem, degree).broken_sums > 0);
  for (auto& key : logit.keys) {
    for (double& x : key) x *= 1.02;
  }
  CHECK(count_bias(problem, logit).broken_entries > 0);
  for (double& x : mean.keys[merged]) x += 0.05;
  CHECK(count_bias(problem, mean).broken_sums > 0);
}

TEST_CASE("a logit that is wrong only for single tokens is detected") {
  const Subject subject = clustered();
  const MassProblem problem = mass_problem(subject);
  MassEntries entries = mass_entries(problem, subject, 75, registered_method("chelsea"), cpu());
  for (std::size_t e = 0; e < entries.degrees.size(); ++e) {
    for (double& x : entries.keys[e]) x *= entries.degrees[e] == 1 ? 0.98 : 1;
  }
  CHECK(count_bias(problem, entries).broken_entries > 0);
}

// Head 1 is worst in even blocks, head 2 in odd ones.
TEST_CASE("the worst head of one half is compared with the others in the other half") {
  std::vector<HeadLinks> heads(3);
  heads[0].unlinked_by_block = {0.1, 0.1, 0.1, 0.1};
  heads[1].unlinked_by_block = {0.6, 0.2, 0.8, 0.4};
  heads[2].unlinked_by_block = {0.5, 0.9, 0.5, 0.7};
  CHECK(worst_in_half(heads, 0) == 1);
  CHECK(worst_in_half(heads, 1) == 2);
  const std::vector<double> d = against_others(heads, 1, 0);
  REQUIRE(d.size() == 2);
  CHECK(d[0] == Approx(0.2 - 0.5));
  CHECK(d[1] == Approx(0.4 - 0.4));
}
