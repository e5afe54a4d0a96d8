// SPDX-License-Identifier: Apache-2.0
// One thread per element of the result, or two for the bounds: neighbours read neighbouring columns.
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

__global__ void page_bounds(PageBounds<DeviceMatrix> op) {
  const Index d = op.rows.cols;
  for (Index e = first_index(); e < op.out.rows * d; e += index_stride()) {
    const Index p = e / d;
    const Index c = e % d;
    const Index end = min(op.rows.rows, (p + 1) * op.page);
    float high = op.rows(p * op.page, c);
    float low = high;
    for (Index i = p * op.page + 1; i < end; ++i) {
      const float x = op.rows(i, c);
      high = high < x ? x : high;  // not fmaxf: of two zeros the first one stays, as on the host
      low = x < low ? x : low;
    }
    op.out(p, c) = high;
    op.out(p, d + c) = low;
  }
}

__global__ void split_signs(SplitSigns<DeviceMatrix> op) {
  const Index d = op.rows.cols;
  for (Index e = first_index(); e < op.rows.rows * d; e += index_stride()) {
    const float x = op.rows(e / d, e % d);
    op.out(e / d, e % d) = x > 0 ? x : 0.0f;
    op.out(e / d, d + e % d) = x < 0 ? x : 0.0f;
  }
}

}  // namespace

template <>
void run(const PageBounds<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.out.rows * op.rows.cols, page_bounds, op);
}

template <>
void run(const SplitSigns<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.rows * op.rows.cols, split_signs, op);
}

}  // namespace kvbench::kernels::cuda
