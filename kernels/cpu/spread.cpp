// SPDX-License-Identifier: Apache-2.0
#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

template <>
void run(const SpreadRows<HostMatrix>& op, Context&) {
  const Index n = op.rows.rows, cols = op.rows.cols, stride = op.rows.stride;
  const Vec factor = broadcast(op.factor);
  for (Index k = 0; k < op.sources.rows; ++k) {
    const Index source = op.sources.data[k * op.sources.stride];
    const Index last = source + op.count < n - 1 ? source + op.count : n - 1;
    const float* from = op.rows.data + source * stride;
    // A strip of the source stays in a register while it is added to rows.
    Index c = 0;
    for (; c + W <= cols; c += W) {
      const Vec part = load(from + c);
      for (Index i = source + 1; i <= last; ++i) {
        float* to = op.rows.data + i * stride + c;
        store(to, fma(factor, part, load(to)));
      }
    }
    for (Index i = source + 1; i <= last; ++i)
      for (Index rest = c; rest < cols; ++rest) op.rows.data[i * stride + rest] += op.factor * from[rest];
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
