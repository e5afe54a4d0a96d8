// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/errors.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvbench::replay {
namespace {

double ratio(double error, double reference) {
  if (reference > 0) return error / reference;
  return error == 0 ? 0 : std::numeric_limits<double>::infinity();
}

void set(MetricRow& row, Metric metric, double value) {
  row[static_cast<std::size_t>(metric)] = static_cast<float>(value);
}

}  // namespace

SquaredError set_errors(const RowTruth& truth, const RowState& answer, MetricRow& row) {
  SquaredError squares;
  double clamped = 0;
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    const double exact = truth.out[c], difference = component(answer, c) - exact, positive = std::max(exact, 1e-8);
    squares.difference += difference * difference;
    squares.exact += exact * exact;
    clamped += positive * positive;
  }
  const double error = std::sqrt(squares.difference);
  set(row, Metric::rel_err, ratio(error, std::sqrt(squares.exact)));
  set(row, Metric::relerr_balancekv, error / std::sqrt(clamped));
  set(row, Metric::err_bound_op, ratio(error, truth.p_norm * truth.v_op));
  set(row, Metric::err_bound_fro, ratio(error, truth.p_norm * truth.v_fro));
  set(row, Metric::log_z_err, answer.den > 0 ? std::log(answer.den) + answer.max - truth.log_sum_exp : NAN);
  return squares;
}

void set_decomposition(const RowTruth& truth, const RowState& answer, const RowState& plain, MetricRow& row) {
  if (plain.den <= 0 || answer.den <= 0) {
    set(row, Metric::mass_err, NAN);
    set(row, Metric::dir_err, NAN);
    return;
  }
  // Share of T in the exact mass (w) and in the mass of the answer (w_hat).
  const double w = std::max(0.0, -std::expm1(std::log(plain.den) + plain.max - truth.log_sum_exp));
  const double w_hat = std::max(0.0, -std::expm1(std::log(plain.den) + plain.max - std::log(answer.den) - answer.max));
  double mass = 0, direction = 0, exact = 0;
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    const double z_exact = truth.out[c], mu_h = component(plain, c), z = component(answer, c);
    // w (mu_T - mu_H) = z* - mu_H, so that nothing is divided by a small w unless the answer gives T mass that it does
    // not have.
    const double toward_t = z_exact - mu_h;
    const double mass_c = (w > 0 ? w_hat / w - 1 : 0) * toward_t;
    mass += mass_c * mass_c;
    direction += (z - z_exact - mass_c) * (z - z_exact - mass_c);
    exact += z_exact * z_exact;
  }
  set(row, Metric::mass_err, ratio(std::sqrt(mass), std::sqrt(exact)));
  set(row, Metric::dir_err, ratio(std::sqrt(direction), std::sqrt(exact)));
}

}  // namespace kvbench::replay
