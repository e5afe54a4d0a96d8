// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/prompt_scale.hpp>

#include <algorithm>

namespace kvbench::methods {

float prompt_scale(const std::vector<Buffer<const float>>& arrays, float peak, Backend& backend) {
  float scale = 0;
  for (const Buffer<const float>& rows : arrays) {
    if (rows.size() == 0) continue;
    const auto column = [&] { return backend.allocate<float>(rows.rows()); };
    const kernels::GroupScales<Buffer> op{.rows = rows,
                                          .format = {.group = rows.cols(),
                                                     .scale = kernels::Scale::largest,
                                                     .peak = peak,
                                                     .stored = kernels::Stored::f32},
                                          .scale = column(),
                                          .inverse = column(),
                                          .offset = column(),
                                          .stored_scale = column(),
                                          .stored_offset = column()};
    backend.run(op);
    for (const float of_row : backend.read(op.scale)) scale = std::max(scale, of_row);
  }
  return scale == 0 ? 1 : scale;
}

}  // namespace kvbench::methods
