// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

template <>
void run(const PageBounds<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  for (Index p = 0; p < op.out.rows; ++p) {
    for (Index c = 0; c < d; ++c) {
      float high = op.rows(p * op.page, c), low = high;
      for (Index i = p * op.page; i < std::min(op.rows.rows, (p + 1) * op.page); ++i) {
        high = std::max(high, op.rows(i, c));
        low = std::min(low, op.rows(i, c));
      }
      op.out(p, c) = high;
      op.out(p, d + c) = low;
    }
  }
}

template <>
void run(const SplitSigns<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  for (Index i = 0; i < op.rows.rows; ++i) {
    for (Index c = 0; c < d; ++c) {
      op.out(i, c) = std::max(op.rows(i, c), 0.0f);
      op.out(i, d + c) = std::min(op.rows(i, c), 0.0f);
    }
  }
}

}  // namespace kvbench::kernels::ref
