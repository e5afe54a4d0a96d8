// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

template <>
void run(const SpreadRows<HostMatrix>& op, Context&) {
  for (Index k = 0; k < op.sources.rows; ++k) {
    const Index source = op.sources[k], end = std::min(op.rows.rows, source + 1 + op.count);
    for (Index i = source + 1; i < end; ++i)
      for (Index c = 0; c < op.rows.cols; ++c) op.rows(i, c) += op.factor * op.rows(source, c);
  }
}

}  // namespace kvbench::kernels::ref
