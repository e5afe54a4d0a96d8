// SPDX-License-Identifier: Apache-2.0
// One block of a balance walk: its rows as the kernel function reads them, its shift, and its scratch memory.
//
// In single precision exp() must stay between e^-87 and e^80, so a shift chosen for the block replaces the caller's.
#pragma once

#include "pack.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

using Walk = BalanceWalk<HostMatrix>;

constexpr Index kGroup = 256;

/// Rows of a block as the products read them: in place, or a copy where they are centred or weighted.
struct Rows {
  const float* data;
  Index stride, d;
};

struct BlockWalk {
  Index begin, rows;
  Rows keys, values;
  float shift;  // subtracted from the exponents here
  double step;  // for sums of K as shifted here
  double given_shift, given_step;
  double flushed;  // upper bound of a term that was flushed to zero
  float* strips;   // keys of a group
  float* value_strips;
  float* sums;    // [kGroup] sums of terms of the current group of rows
  double* total;  // [kGroup] sums of terms of all earlier groups
  float* terms;   // [kStrip][kStrip] K between the rows of a strip
  float* signs;   // [rows]
};

inline double absolute(double x) { return x < 0 ? -x : x; }

inline double largest_norm2(const Rows& rows, Index count) {
  double largest = 0;
  for (Index i = 0; i < count; ++i) {
    const double norm2 = squared_norm(rows.data + i * rows.stride, rows.d);
    largest = norm2 > largest ? norm2 : largest;
  }
  return largest;
}

/// Sum of squares in single precision.
inline float rough_norm2(const float* row, Index d) {
  Vec lanes{};
  Index c = 0;
  for (; c + W <= d; c += W) lanes = fma(load(row + c), load(row + c), lanes);
  float total = sum(lanes);
  for (; c < d; ++c) total += row[c] * row[c];
  return total;
}

/// Not below largest_norm2.
inline double norm2_bound(const Rows& rows, Index count) {
  float largest = 0;
  for (Index i = 0; i < count; ++i) {
    const float norm2 = rough_norm2(rows.data + i * rows.stride, rows.d);
    largest = norm2 > largest ? norm2 : largest;
  }
  return static_cast<double>(largest) * (1 + static_cast<double>(rows.d + 16) * 0x1p-23) + 0x1p-100;
}

/// The rows of a block, each less `centre` and times its weight; null: zeros, or ones.
inline Rows rows_of(const HostMatrix<const float>& matrix, Index begin, Index count, const double* centre,
                    const HostMatrix<const float>* weights, float* copy) {
  const Rows rows = {matrix.data + begin * matrix.stride, matrix.stride, matrix.cols};
  if (centre == nullptr && weights == nullptr) return rows;
  for (Index i = 0; i < count; ++i) {
    const double weight = weights == nullptr ? 1 : static_cast<double>(weights->data[(begin + i) * weights->stride]);
    for (Index c = 0; c < rows.d; ++c) {
      const double x = static_cast<double>(rows.data[i * rows.stride + c]);
      copy[i * rows.d + c] = static_cast<float>(weight * (centre == nullptr ? x : x - centre[c]));
    }
  }
  return {copy, rows.d, rows.d};
}

inline void sum_keys(const Walk& op, Index begin, Index count, double* centre) {
  for (Index c = 0; c < op.keys.cols; ++c) centre[c] = 0;
  for (Index i = begin; i < begin + count; ++i)
    for (Index c = 0; c < op.keys.cols; ++c)
      centre[c] += static_cast<double>(op.keys.data[i * op.keys.stride + c]) / static_cast<double>(op.centre);
}

inline BlockWalk start_block(const Walk& op, Index b, Context& context) {
  constexpr double kHighest = 60;  // room for the values, and for sums, below e^88
  BlockWalk walk = {};
  walk.begin = op.starts.data[b * op.starts.stride];
  walk.rows = op.starts.data[(b + 1) * op.starts.stride] - walk.begin;
  const Index d = op.keys.cols, dv = op.values.data == nullptr ? 0 : op.values.cols;
  double* centre = nullptr;
  if (op.centre > 0) sum_keys(op, walk.begin, walk.rows, centre = scratch<double>(context, 0, d));
  walk.keys = rows_of(op.keys, walk.begin, walk.rows, centre, nullptr,
                      scratch<float>(context, 1, op.centre > 0 ? walk.rows * d : 0));
  const bool weighted = dv > 0 && op.weights.data != nullptr;
  if (op.values.data != nullptr)
    walk.values = rows_of(op.values, walk.begin, walk.rows, nullptr, weighted ? &op.weights : nullptr,
                          scratch<float>(context, 2, weighted ? walk.rows * dv : 0));
  walk.strips = scratch<float>(context, 3, kGroup * d);
  walk.value_strips = scratch<float>(context, 4, kGroup * dv);
  walk.sums = scratch<float>(context, 5, kGroup);
  walk.total = scratch<double>(context, 6, kGroup);
  walk.terms = scratch<float>(context, 7, kStrip * kStrip);
  walk.signs = scratch<float>(context, 8, walk.rows);

  const double scale = absolute(static_cast<double>(op.scale));
  const bool small = scale * norm2_bound(walk.keys, walk.rows) <= kHighest;  // no shift, and nothing is flushed
  const double limit = small ? 0 : scale * largest_norm2(walk.keys, walk.rows);
  const double factor = op.values.data == nullptr || small
                            ? 1
                            : largest_norm2(walk.values, walk.rows) + absolute(static_cast<double>(op.value_offset));
  walk.shift = static_cast<float>(limit > kHighest ? limit - kHighest : 0);
  walk.given_shift = static_cast<double>(op.shift.data[b * op.shift.stride]);
  walk.given_step = op.greedy ? 1 : static_cast<double>(op.step.data[b * op.step.stride]);
  walk.step = op.greedy ? 1 : walk.given_step * __builtin_exp(static_cast<double>(walk.shift) - walk.given_shift);
  const bool flushes = -limit - static_cast<double>(walk.shift) < -87;
  walk.flushed = flushes ? 1.2e-38 * factor : 0;  // e^-87.3
  return walk;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
