// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/prompt_scale.hpp>

#include <algorithm>

#include <kvbench/methods/quantisation/group_codec.hpp>

namespace kvbench::methods {

float prompt_scale(const std::vector<Buffer<const float>>& arrays, float peak, Backend& backend) {
  float scale = 0;
  for (const Buffer<const float>& rows : arrays) {
    if (rows.size() == 0) continue;
    const kernels::GroupFormat format = {
        .group = rows.cols(), .scale = kernels::Scale::largest, .peak = peak, .stored = kernels::Stored::f32};
    for (const float of_row : backend.read(scales_of(rows, format, backend).scale)) scale = std::max(scale, of_row);
  }
  return scale == 0 ? 1 : scale;
}

}  // namespace kvbench::methods
