// SPDX-License-Identifier: Apache-2.0
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// Operations whose time does not matter have one implementation.
template <class Op>
void run_reference(const Op& op) {
  ref::Context reference;
  ref::run(op, reference);
}

/// out[j] += exp(scores[j] - log_sum_exp).
void add_masses(const float* scores, float log_sum_exp, Index n, float* out) {
  const Vec base = broadcast(log_sum_exp);
  Index j = 0;
  for (; j + W <= n; j += W) store(out + j, load(out + j) + exp(load(scores + j) - base));
  for (; j < n; ++j) out[j] += exp(broadcast(scores[j]) - base)[0];
}

/// out[j] = exp(scores[j] - log_sum_exp).
void softmax_row(const float* scores, float log_sum_exp, Index n, float* out) {
  const Vec base = broadcast(log_sum_exp);
  Index j = 0;
  for (; j + W <= n; j += W) store(out + j, exp(load(scores + j) - base));
  for (; j < n; ++j) out[j] = exp(broadcast(scores[j]) - base)[0];
}

}  // namespace

template <>
void run(const GatherRows<HostMatrix>& op, Context&) {
  if (op.source.cols == 0) return;
  for (Index i = 0; i < op.ids.rows; ++i)
    __builtin_memcpy(op.out.data + i * op.out.stride, op.source.data + op.ids.data[i] * op.source.stride,
                     static_cast<std::size_t>(op.source.cols) * sizeof(float));
}

template <>
void run(const SquaredNorms<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i)
    op.out.data[i * op.out.stride] = squared_norm(op.rows.data + i * op.rows.stride, op.rows.cols);
}

template <>
void run(const ColumnSums<HostMatrix>& op, Context&) {
  constexpr Index chunk = 2048;  // sums of a chunk stay in the first-level cache while rows are added
  const Index m = op.out.rows == 0 ? 0 : op.scores.rows / op.out.rows;
  for (Index g = 0; g < op.out.rows; ++g)
    for (Index begin = 0; begin < op.out.cols; begin += chunk) {
      const Index n = min(chunk, op.out.cols - begin);
      float* out = op.out.data + g * op.out.stride + begin;
      for (Index j = 0; j < n; ++j) out[j] = 0;
      for (Index row = g * m; row < (g + 1) * m; ++row) {
        const float log_sum_exp = op.log_sum_exp.data[row * op.log_sum_exp.stride];
        if (log_sum_exp != -kInfinity) add_masses(op.scores.data + row * op.scores.stride + begin, log_sum_exp, n, out);
      }
    }
}

template <>
void run(const SoftmaxRows<HostMatrix>& op, Context&) {
  for (Index r = 0; r < op.scores.rows; ++r) {
    const float log_sum_exp = op.log_sum_exp.data[r * op.log_sum_exp.stride];
    float* out = op.out.data + r * op.out.stride;
    if (log_sum_exp == -kInfinity)
      for (Index j = 0; j < op.scores.cols; ++j) out[j] = 0;
    else
      softmax_row(op.scores.data + r * op.scores.stride, log_sum_exp, op.scores.cols, out);
    op.norm.data[r * op.norm.stride] = static_cast<float>(__builtin_sqrt(squared_norm(out, op.scores.cols)));
  }
}

template <>
void run(const RotateRows<HostMatrix>& op, Context&) {
  run_reference(op);
}
template <>
void run(const PoolRows<HostMatrix>& op, Context&) {
  run_reference(op);
}
template <>
void run(const ReduceRows<HostMatrix>& op, Context&) {
  run_reference(op);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
