// SPDX-License-Identifier: Apache-2.0
#include "../kernels.hpp"

namespace kvbench::kernels::ref {

template <>
void run(const PhiloxFill<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.out.rows; ++i) {
    PhiloxBlock counter = op.counter;
    counter.x[2] += static_cast<std::uint32_t>(i);
    const PhiloxBlock block = philox4x32(counter, op.key);
    for (Index c = 0; c < 4; ++c) op.out(i, c) = block.x[c];
  }
}

}  // namespace kvbench::kernels::ref
