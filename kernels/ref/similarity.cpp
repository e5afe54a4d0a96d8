// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

double inner_product(const float* a, const float* b, Index d) {
  double sum = 0;
  for (Index c = 0; c < d; ++c) sum += static_cast<double>(a[c]) * b[c];
  return sum;
}

}  // namespace

template <>
void run(const NormalizeRows<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i) {
    const double norm = std::sqrt(inner_product(op.rows.row(i), op.rows.row(i), op.rows.cols));
    for (Index c = 0; c < op.rows.cols; ++c) op.out(i, c) = norm > 0 ? static_cast<float>(op.rows(i, c) / norm) : 0;
  }
}

template <>
void run(const InnerProducts<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.a.rows; ++i)
    for (Index j = 0; j < op.b.rows; ++j)
      op.out(i, j) = static_cast<float>(inner_product(op.a.row(i), op.b.row(j), op.a.cols));
}

template <>
void run(const BestMatch<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.points.rows; ++i) {
    const Index first = op.first.empty() ? 0 : op.first[i];
    const Index last = op.last.empty() ? op.candidates.rows : op.last[i];
    std::int32_t best = -1;
    double highest = -std::numeric_limits<double>::infinity();
    for (Index c = first; c < last; ++c) {
      if (op.skip_self && c == i) continue;
      const double score =
          inner_product(op.points.row(i), op.candidates.row(c), op.points.cols) + (op.bias.empty() ? 0 : op.bias[c]);
      if (best >= 0 && score <= highest) continue;
      best = static_cast<std::int32_t>(c);
      highest = score;
    }
    op.best[i] = best;
    if (!op.score.empty()) op.score[i] = static_cast<float>(highest);
  }
}

template <>
void run(const MeanRows<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  std::vector<double> sums(static_cast<std::size_t>(op.out.rows * d)), mass(static_cast<std::size_t>(op.out.rows));
  for (Index i = 0; i < op.rows.rows; ++i) {
    if (op.labels[i] < 0) continue;
    const double weight = op.weights.empty() ? 1 : op.weights[i];
    mass[static_cast<std::size_t>(op.labels[i])] += weight;
    for (Index c = 0; c < d; ++c) sums[static_cast<std::size_t>(op.labels[i] * d + c)] += weight * op.rows(i, c);
  }
  for (Index label = 0; label < op.out.rows; ++label) {
    const double total = mass[static_cast<std::size_t>(label)];
    op.mass[label] = static_cast<float>(total);
    if (total == 0) continue;
    for (Index c = 0; c < d; ++c)
      op.out(label, c) = static_cast<float>(sums[static_cast<std::size_t>(label * d + c)] / total);
  }
}

}  // namespace kvbench::kernels::ref
