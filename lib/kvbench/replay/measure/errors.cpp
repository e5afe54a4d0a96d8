// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/errors.hpp>

#include <algorithm>
#include <cmath>

namespace kvbench::replay {
namespace {

/// The two terms of the error, of which `squares` has the norms of everything else.
void add_terms(const RowTruth& truth, const RowState& answer, const RowState& plain, SquaredNorms& squares) {
  // Share of T in the exact mass (w) and in the mass of the answer (w_hat).
  const double w = std::max(0.0, -std::expm1(std::log(plain.den) + plain.max - truth.log_sum_exp));
  const double w_hat = std::max(0.0, -std::expm1(std::log(plain.den) + plain.max - std::log(answer.den) - answer.max));
  squares.mass = squares.direction = 0;
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    const double exact = truth.out[c], mu_h = component(plain, c), z = component(answer, c);
    // w (mu_T - mu_H) = z* - mu_H, so that nothing is divided by a small w unless the answer gives T mass that it does
    // not have.
    const double mass = (w > 0 ? w_hat / w - 1 : 0) * (exact - mu_h);
    squares.mass += mass * mass;
    squares.direction += (z - exact - mass) * (z - exact - mass);
  }
}

}  // namespace

SquaredNorms squared_norms(const RowTruth& truth, const RowState& answer, const RowState& plain) {
  SquaredNorms squares;
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    const double exact = truth.out[c], difference = component(answer, c) - exact, positive = std::max(exact, 1e-8);
    squares.difference += difference * difference;
    squares.exact += exact * exact;
    squares.clamped += positive * positive;
  }
  if (plain.den > 0 && answer.den > 0) add_terms(truth, answer, plain, squares);
  return squares;
}

}  // namespace kvbench::replay
