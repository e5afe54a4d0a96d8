// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

using Walk = BalanceWalk<HostMatrix>;

/// The centre that the keys of block b are taken relative to, [d]; zeros where the walk is not centred.
std::vector<double> centre_of(const Walk& op, Index b) {
  std::vector<double> centre(static_cast<std::size_t>(op.keys.cols));
  if (op.centre == 0) return centre;
  for (Index i = op.starts[b]; i < op.starts[b + 1]; ++i)
    for (Index c = 0; c < op.keys.cols; ++c)
      centre[static_cast<std::size_t>(c)] += static_cast<double>(op.keys(i, c)) / static_cast<double>(op.centre);
  return centre;
}

double kernel(const Walk& op, const std::vector<double>& centre, Index b, Index i, Index j) {
  double logit = 0, factor = 0;
  for (Index c = 0; c < op.keys.cols; ++c) {
    const double mean = centre[static_cast<std::size_t>(c)];
    logit += (op.keys(i, c) - mean) * (op.keys(j, c) - mean);
  }
  for (Index c = 0; c < op.values.cols; ++c) factor += static_cast<double>(op.values(i, c)) * op.values(j, c);
  if (!op.weights.empty()) factor *= static_cast<double>(op.weights[i]) * op.weights[j];
  return std::exp(op.scale * logit - op.shift[b]) * (op.values.empty() ? 1 : factor + op.value_offset);
}

/// Draws the sign of row i, whose kernel sum with the rows before it is `sum`.
int draw_sign(const Walk& op, Index b, Index i, double sum) {
  if (!op.greedy && std::abs(op.step[b] * sum) > 0.5) ++op.fails[b];
  if (op.first_positive && i == op.starts[b]) return 1;
  if (op.greedy) return sum > 0 ? -1 : 1;
  return op.uniforms[i] < 0.5 - op.step[b] * sum ? 1 : -1;
}

void walk(const Walk& op, Index b) {
  const std::vector<double> centre = centre_of(op, b);
  const Index width = op.pairs ? 2 : 1;
  op.fails[b] = 0;
  for (Index i = op.starts[b]; i < op.starts[b + 1]; i += width) {
    const Index end = i + width < op.starts[b + 1] ? i + width : op.starts[b + 1];
    double sum = 0;  // of sign_j K(i, j), less the same for the partner of i
    for (Index j = op.starts[b]; j < i; ++j)
      for (Index r = i; r < end; ++r) sum += (r == i ? 1 : -1) * op.signs[j] * kernel(op, centre, b, r, j);
    op.signs[i] = draw_sign(op, b, i, sum);
    if (end > i + 1) op.signs[i + 1] = -op.signs[i];
  }
}

}  // namespace

template <>
void run(const BalanceWalk<HostMatrix>& op, Context&) {
  for (Index b = 0; b < op.shift.rows; ++b) walk(op, b);
}

}  // namespace kvbench::kernels::ref
