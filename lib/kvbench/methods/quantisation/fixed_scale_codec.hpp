// SPDX-License-Identifier: Apache-2.0
// The codec of numbers of 8 bits that all have one scale, which does not depend on the rows.
#pragma once

#include <kvbench/kernels/codes.hpp>
#include <kvbench/methods/contract/codec.hpp>

namespace kvbench::methods {

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
