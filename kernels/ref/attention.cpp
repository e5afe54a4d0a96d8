// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

std::vector<double> logits_of(const ExactAttention<HostMatrix>& op, Index row) {
  const Index query = row % op.first.rows;
  std::vector<double> logits(static_cast<std::size_t>(op.keys.rows), kNothing);
  for (Index j = op.first[query]; j < op.last[query]; ++j) {
    double dot = 0;
    for (Index c = 0; c < op.keys.cols; ++c) dot += static_cast<double>(op.queries(row, c)) * op.keys(j, c);
    logits[static_cast<std::size_t>(j)] = op.scale * dot;
  }
  return logits;
}

void answer(const ExactAttention<HostMatrix>& op, Index row, const std::vector<double>& logits) {
  double max = kNothing;
  for (double logit : logits) max = std::max(max, logit);

  double sum = 0;
  std::vector<double> out(static_cast<std::size_t>(op.values.cols), 0.0);
  for (Index j = 0; j < op.keys.rows; ++j) {
    const double logit = logits[static_cast<std::size_t>(j)];
    if (logit == kNothing) continue;
    const double weight = std::exp(logit - max);
    sum += weight;
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += weight * op.values(j, static_cast<Index>(c));
  }

  op.max[row] = static_cast<float>(max);
  op.log_sum_exp[row] = static_cast<float>(sum == 0 ? kNothing : max + std::log(sum));
  for (std::size_t c = 0; c < out.size(); ++c)
    op.out(row, static_cast<Index>(c)) = static_cast<float>(sum == 0 ? 0 : out[c] / sum);
}

}  // namespace

template <>
void run(const ExactAttention<HostMatrix>& op, Context&) {
  for (Index row = 0; row < op.queries.rows; ++row) {
    const std::vector<double> logits = logits_of(op, row);
    answer(op, row, logits);
    if (op.scores.empty()) continue;
    for (Index j = 0; j < op.keys.rows; ++j)
      op.scores(row, j) = static_cast<float>(logits[static_cast<std::size_t>(j)]);
  }
}

}  // namespace kvbench::kernels::ref
