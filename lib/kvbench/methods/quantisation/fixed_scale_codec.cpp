// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/fixed_scale_codec.hpp>

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

namespace {

kernels::GroupFormat minifloat_format(int exponent_bits, float largest) {
  return {.scale = kernels::Scale::largest,
          .peak = largest,
          .stored = kernels::Stored::f32,
          .grid = kernels::Grid::minifloat,
          .bits = 8,
          .exponent_bits = exponent_bits,
          .mantissa_bits = 7 - exponent_bits,
          .largest = largest};
}

}  // namespace

kernels::GroupFormat e4m3_format() { return minifloat_format(4, 448); }
kernels::GroupFormat e5m2_format() { return minifloat_format(5, 57344); }

Buffer<const float> FixedScaleCodec::decoded(const Buffer<const float>& rows, Backend& backend) const {
  kernels::GroupFormat format = format_;
  format.group = std::max<Index>(1, rows.cols());
  auto scale = backend.allocate<float>(rows.rows()), offset = backend.allocate<float>(rows.rows());
  backend.fill(scale, scale_);
  backend.fill(offset, 0.0f);
  return recoded(rows, format, {.scale = scale, .offset = offset, .stored_scale = scale, .stored_offset = offset},
                 backend);
}

Footprint FixedScaleCodec::footprint(Index rows, Index cols) const {
  Footprint arrays = {{.name = "codes", .element = Element::u8, .rows = rows, .cols = cols}};
  if (stores_scale_) arrays.push_back({.name = "scale", .element = Element::f32, .rows = 1, .cols = 1});
  return arrays;
}

}  // namespace kvbench::methods
