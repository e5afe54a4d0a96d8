// SPDX-License-Identifier: Apache-2.0
// Columns do not meet, sources come one after the other: one thread a column.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

__global__ void spread_rows(SpreadRows<DeviceMatrix> op) {
  for (Index c = first_index(); c < op.rows.cols; c += index_stride()) {
    for (Index k = 0; k < op.sources.rows; ++k) {
      const Index source = op.sources[k];
      const Index end = min(op.rows.rows, source + 1 + op.count);
      const float share = op.factor * op.rows(source, c);
      for (Index i = source + 1; i < end; ++i) op.rows(i, c) += share;
    }
  }
}

}  // namespace

template <>
void run(const SpreadRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.cols, spread_rows, op);
}

}  // namespace kvbench::kernels::cuda
