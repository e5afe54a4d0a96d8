// SPDX-License-Identifier: Apache-2.0
// The codec of numbers of 8 bits that all have one scale, which does not depend on the rows.
// The scale of whole arrays, which a codec takes from a prompt and keeps while tokens are decoded.
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/kernels/codes.hpp>
#include <kvbench/methods/contract/codec.hpp>

namespace kvbench::methods {

/// max |x| / peak over the numbers of all arrays, passing over NaN; 1 where there are none or all are 0.
float prompt_scale(const std::vector<Buffer<const float>>& arrays, float peak, Backend& backend);

/// Floating-point numbers of 8 bits, with a scale in fp32 that makes the largest number of a group the largest code.
kernels::GroupFormat e4m3_format();
kernels::GroupFormat e5m2_format();

class FixedScaleCodec : public Codec {
 public:
  /// stores_scale: the scale takes 4 bytes.
  FixedScaleCodec(const kernels::GroupFormat& format, float scale, bool stores_scale)
      : format_(format), scale_(scale), stores_scale_(stores_scale) {}

  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override;
  bool by_row() const override { return true; }
  Footprint footprint(Index rows, Index cols) const override;

 private:
  kernels::GroupFormat format_;
  float scale_;
  bool stores_scale_;
};

}  // namespace kvbench::methods
