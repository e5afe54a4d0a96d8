// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/measurements.hpp>

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/replay/records/results.hpp>

using namespace kvbench;
using namespace kvbench::replay;

namespace {

using doctest::Approx;

double get(const MetricRow& row, Metric metric) { return row[metric]; }

MetricRow errors_of(const RowTruth& truth, const RowState& answer, const RowState& plain = {}) {
  MetricRow row{};
  set_metrics({.exact = truth, .answer = answer, .squares = squared_norms(truth, answer, plain)}, row);
  return row;
}

/// p = (0.5, 0.3, 0.2), Z = 10, values (1, 0), (0, 2), (4, 4): z* = (1.3, 1.4).
struct ThreeTokens {
  std::vector<float> out = {1.3f, 1.4f};
  RowTruth truth{out, std::log(10.0), std::sqrt(0.38), 5, 6};
  double norm = std::sqrt(1.3 * 1.3 + 1.4 * 1.4);
};

}  // namespace

TEST_CASE("errors of a hand example") {
  const std::vector<float> out = {3, -4}, num = {1, -2};
  const RowTruth truth{out, std::log(4.0), 0.5, 10, 20};
  // z = (0.5, -1) and Z_hat = 2 e: z - z* = (-2.5, 3).
  const MetricRow row = errors_of(truth, {1, 2, num});
  const SquaredNorms squares = squared_norms(truth, {1, 2, num}, {});
  const double error = std::sqrt(2.5 * 2.5 + 9);
  CHECK(get(row, Metric::rel_err) == Approx(error / 5));
  CHECK(get(row, Metric::relerr_balancekv) == Approx(error / 3));  // the negative coordinate is clamped
  CHECK(get(row, Metric::err_bound_op) == Approx(error / (0.5 * 10)));
  CHECK(get(row, Metric::err_bound_fro) == Approx(error / (0.5 * 20)));
  CHECK(get(row, Metric::log_z_err) == Approx(std::log(2 * std::exp(1.0) / 4)));
  CHECK(squares.difference == Approx(error * error));
  CHECK(squares.exact == Approx(25));
}

TEST_CASE("the scale of a state does not matter") {
  const ThreeTokens t;
  const std::vector<float> num = {6, 3}, small = {0.006f, 0.003f};
  const MetricRow a = errors_of(t.truth, {0, 8, num}), b = errors_of(t.truth, {std::log(1000.0), 0.008, small});
  for (const char* name : {"rel_err", "relerr_balancekv", "err_bound_op", "err_bound_fro", "log_z_err"})
    CHECK(get(a, *find_metric(name)) == Approx(get(b, *find_metric(name))));
}

TEST_CASE("an empty answer is zero") {
  const ThreeTokens t;
  const std::vector<float> num = {0, 0};
  const RowState empty{-INFINITY, 0, num};
  const MetricRow row = errors_of(t.truth, empty, empty);
  CHECK(get(row, Metric::rel_err) == Approx(1));
  CHECK(get(row, Metric::err_bound_op) == Approx(t.norm / (std::sqrt(0.38) * 5)));
  CHECK(std::isnan(get(row, Metric::log_z_err)));
  CHECK(std::isnan(get(row, Metric::mass_err)));
  CHECK(std::isnan(get(row, Metric::dir_err)));
}

TEST_CASE("a zero exact output") {
  const std::vector<float> zero = {0, 0}, num = {1, 0};
  const RowTruth truth{zero, 0, 1, 0, 0};
  MetricRow row = errors_of(truth, {0, 1, zero});
  CHECK(get(row, Metric::rel_err) == 0);
  CHECK(get(row, Metric::relerr_balancekv) == 0);
  CHECK(get(row, Metric::err_bound_op) == 0);
  row = errors_of(truth, {0, 1, num});
  CHECK(std::isinf(get(row, Metric::rel_err)));
  CHECK(std::isinf(get(row, Metric::err_bound_fro)));
  CHECK(get(row, Metric::relerr_balancekv) == Approx(1 / (std::sqrt(2.0) * 1e-8)));
}

TEST_CASE("lost mass and changed direction of a hand example") {
  // H = {token 0}; tokens 1 and 2, exact mass 5, are answered by one entry of mass 4 and value (1, 1). With w = 1/2,
  // w_hat = 4/9, mu_H = (1, 0), mu_T = (1.6, 2.8): the parts are (-1/18)(0.6, 2.8) and (4/9)(-0.6, -1.8).
  const ThreeTokens t;
  const std::vector<float> answer = {9, 4}, plain = {5, 0};
  const MetricRow row = errors_of(t.truth, {0, 9, answer}, {0, 5, plain});
  const double mass[] = {-0.6 / 18, -2.8 / 18}, direction[] = {-0.6 * 4 / 9, -1.8 * 4 / 9};
  CHECK(get(row, Metric::mass_err) == Approx(std::hypot(mass[0], mass[1]) / t.norm));
  CHECK(get(row, Metric::dir_err) == Approx(std::hypot(direction[0], direction[1]) / t.norm));
  // z - z* is their sum.
  CHECK(9.0 / 9 - 1.3 == Approx(mass[0] + direction[0]));
  CHECK(4.0 / 9 - 1.4 == Approx(mass[1] + direction[1]));
  CHECK(get(row, Metric::rel_err) == Approx(std::hypot(mass[0] + direction[0], mass[1] + direction[1]) / t.norm));
}

TEST_CASE("eviction only loses mass") {
  const ThreeTokens t;
  const std::vector<float> kept = {5, 6};  // tokens 0 and 1
  const MetricRow row = errors_of(t.truth, {0, 8, kept}, {0, 8, kept});
  CHECK(get(row, Metric::rel_err) == Approx(std::hypot(5.0 / 8 - 1.3, 6.0 / 8 - 1.4) / t.norm));
  CHECK(get(row, Metric::mass_err) == Approx(get(row, Metric::rel_err)));
  CHECK(get(row, Metric::dir_err) == Approx(0));
}

TEST_CASE("exact mass with a different value is a changed direction") {
  const ThreeTokens t;
  const std::vector<float> answer = {10, 5}, plain = {5, 0};  // tokens 1 and 2: mass 5, value (1, 1)
  const MetricRow row = errors_of(t.truth, {0, 10, answer}, {0, 5, plain});
  CHECK(get(row, Metric::mass_err) == Approx(0));
  CHECK(get(row, Metric::dir_err) == Approx(get(row, Metric::rel_err)));
  CHECK(get(row, Metric::log_z_err) == Approx(0));
}

TEST_CASE("every metric and status has a unique name") {
  for (const Metric a : all_metrics()) {
    CHECK(!name_of(a).empty());
    CHECK(find_metric(name_of(a)) == a);
  }
  CHECK(name_of(Status::ok) == "ok");
  CHECK(name_of(Status::skipped) == "skipped");
  CHECK(name_of(Status::failed) == "failed");
  CHECK(name_of(Status::infeasible) == "infeasible");
}
