// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

void rotate_row(const RotateRows<HostMatrix>& op, Index i) {
  const float* in = op.rows.row(i);
  float* out = op.out.row(i);
  std::copy_n(in, op.rows.cols, out);
  for (Index p = 0; p < op.rotary_dims / 2; ++p) {
    const Index a = op.interleaved ? 2 * p : p;
    const Index b = op.interleaved ? 2 * p + 1 : p + op.rotary_dims / 2;
    const double frequency = std::pow(op.theta, -2.0 * static_cast<double>(p) / static_cast<double>(op.rotary_dims));
    const double angle = static_cast<double>(op.offsets[i]) * frequency;
    const double x = in[a];
    const double y = in[b];
    out[a] = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
    out[b] = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
  }
}

float pooled(const PoolRows<HostMatrix>& op, const float* row, Index centre) {
  if (op.mode == Pooling::none) return row[centre];
  const Index begin = std::max<Index>(centre - op.kernel / 2, 0);
  const Index end = std::min(centre + op.kernel / 2 + 1, op.rows.cols);
  if (op.mode == Pooling::max) return *std::max_element(row + begin, row + end);
  double sum = 0;
  for (Index c = begin; c < end; ++c) sum += row[c];
  return static_cast<float>(sum / static_cast<double>(op.kernel));
}

}  // namespace

template <>
void run(const GatherRows<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.ids.rows; ++i) std::copy_n(op.source.row(op.ids[i]), op.source.cols, op.out.row(i));
}

template <>
void run(const SquaredNorms<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i) {
    op.out[i] = 0;
    for (Index c = 0; c < op.rows.cols; ++c) op.out[i] += static_cast<double>(op.rows(i, c)) * op.rows(i, c);
  }
}

template <>
void run(const RotateRows<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i) rotate_row(op, i);
}

template <>
void run(const ColumnSums<HostMatrix>& op, Context&) {
  const Index m = op.out.rows == 0 ? 0 : op.scores.rows / op.out.rows;
  for (Index g = 0; g < op.out.rows; ++g) {
    for (Index j = 0; j < op.out.cols; ++j) {
      double sum = 0;
      for (Index row = g * m; row < (g + 1) * m; ++row) {
        const double score = op.scores(row, j);
        if (score != -std::numeric_limits<double>::infinity()) sum += std::exp(score - op.log_sum_exp[row]);
      }
      op.out(g, j) = static_cast<float>(sum);
    }
  }
}

template <>
void run(const SoftmaxRows<HostMatrix>& op, Context&) {
  for (Index r = 0; r < op.scores.rows; ++r) {
    const double log_sum_exp = op.log_sum_exp[r];
    double sum = 0;
    for (Index j = 0; j < op.scores.cols; ++j) {
      const bool empty = log_sum_exp == -std::numeric_limits<double>::infinity();
      op.out(r, j) = empty ? 0.0f : static_cast<float>(std::exp(op.scores(r, j) - log_sum_exp));
      sum += static_cast<double>(op.out(r, j)) * op.out(r, j);
    }
    op.norm[r] = static_cast<float>(std::sqrt(sum));
  }
}

template <>
void run(const PoolRows<HostMatrix>& op, Context&) {
  for (Index r = 0; r < op.rows.rows; ++r)
    for (Index c = 0; c < op.rows.cols; ++c) op.out(r, c) = pooled(op, op.rows.row(r), c);
}

template <>
void run(const ReduceRows<HostMatrix>& op, Context&) {
  const Index m = op.out.rows;
  for (Index i = 0; i < m; ++i) {
    const Index groups = op.rows.rows / m;
    for (Index c = 0; c < op.rows.cols; ++c) {
      double result = op.mode == Reduction::max ? -std::numeric_limits<double>::infinity() : 0;
      for (Index r = i; r < op.rows.rows; r += m)
        result = op.mode == Reduction::max ? std::max<double>(result, op.rows(r, c)) : result + op.rows(r, c);
      if (op.mode == Reduction::mean) result /= static_cast<double>(groups);
      op.out(i, c) = static_cast<float>(result);
    }
  }
}

}  // namespace kvbench::kernels::ref
