// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

__global__ void philox_fill(PhiloxFill<DeviceMatrix> op) {
  for (Index i = first_index(); i < op.out.rows; i += index_stride()) {
    PhiloxBlock counter = op.counter;
    counter.x[2] += static_cast<std::uint32_t>(i);
    const PhiloxBlock block = philox4x32(counter, op.key);
    for (int word = 0; word < 4; ++word) op.out(i, word) = block.x[word];
  }
}

}  // namespace

template <>
void run(const PhiloxFill<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.out.rows, philox_fill, op);
}

}  // namespace kvbench::kernels::cuda
