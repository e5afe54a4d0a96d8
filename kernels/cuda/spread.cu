// SPDX-License-Identifier: Apache-2.0
// One thread per column, which adds one source after the other: columns are independent.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

constexpr int kAtOnce = 8;

__global__ void spread_rows(SpreadRows<DeviceMatrix> op) {
  for (Index c = first_index(); c < op.rows.cols; c += index_stride()) {
    for (Index k = 0; k < op.sources.rows; ++k) {
      const Index source = op.sources[k];
      const Index end = min(op.rows.rows, source + 1 + op.count);
      const float share = op.factor * op.rows(source, c);
      for (Index i = source + 1; i < end; i += kAtOnce) {
        float sums[kAtOnce];  // all loads are issued before the first store waits for one
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) sums[r] = i + r < end ? op.rows(i + r, c) + share : 0.0f;
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
          if (i + r < end) op.rows(i + r, c) = sums[r];
        }
      }
    }
  }
}

}  // namespace

template <>
void run(const SpreadRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.cols, spread_rows, op);
}

}  // namespace kvbench::kernels::cuda
