// SPDX-License-Identifier: Apache-2.0
// The codec of most quantisers: numbers in groups, each with a scale of its own (kernels/codes.hpp).
#pragma once

#include <algorithm>

#include <kvbench/kernels/codes.hpp>
#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/quantisation/lloyd_max.hpp>

namespace kvbench::methods {

/// The scales of all groups of rows, as GroupScales computes them.
struct GroupScaleArrays {
  Buffer<float> scale, inverse, offset, stored_scale, stored_offset;
};
GroupScaleArrays scales_of(const Buffer<const float>& rows, const kernels::GroupFormat& format, Backend& backend);

/// By what rows are encoded and decoded, as EncodeGroups and DecodeGroups read it; `inverse` and `book` may be absent.
/// Where `stored_scale` is, FitScales computes it.
struct CodeScales {
  Buffer<const float> scale, inverse, offset, stored_scale, stored_offset;
  const Codebook* book = nullptr;
};
/// What the codes of `rows` are decoded to.
Buffer<float> recoded(const Buffer<const float>& rows, const kernels::GroupFormat& format, const CodeScales& scales,
                      Backend& backend);

/// Equal steps between the minimum and the maximum of a group of channels, both stored in f16.
constexpr kernels::GroupFormat range_format(int bits, Index group) {
  return {.group = group, .scale = kernels::Scale::range, .peak = static_cast<float>((1 << bits) - 1), .bits = bits};
}

/// The step of a row of `columns` numbers is its largest magnitude / 127, in fp32; codes are x (1 / step).
constexpr kernels::GroupFormat row_of_int8(Index columns) {
  return {.group = std::max<Index>(1, columns),
          .scale = kernels::Scale::largest,
          .peak = 127,
          .quotient = kernels::GroupFormat::Quotient::inverse,
          .stored = kernels::Stored::f32,
          .bits = 8,
          .zero = 128};
}

/// Which rows are encoded while tokens are decoded. See Codec::encoded().
enum class Residual {
  none,     ///< every row at once
  batches,  ///< the last n mod R rows of a prompt are not; decoded ones are once R rows wait, after that step's queries
  window,   ///< the last R rows of a prompt are not; later one row is after each step's queries, and R wait
};

struct GroupCodecSettings {
  kernels::GroupFormat format;
  std::shared_ptr<const Codebook> codebook;  ///< of Grid::codebook; where `fitted`, of Grid::steps too
  bool encode_with_stored = true;            ///< codes follow from the scales as stored, otherwise from those in fp32
  bool fitted = false;                       ///< rows are decoded with the scales of FitScales
  bool sums = false;                         ///< a group stores the sum of its codes, too, in 32 bits
  Index hadamard = 0;  ///< rows are rotated in blocks of so many columns before they are encoded; 0: not
  Residual residual = Residual::none;
  Index waiting = 0;  ///< R
};

class GroupCodec : public Codec {
 public:
  explicit GroupCodec(const GroupCodecSettings& settings) : settings_(settings) {}

  Index encoded(Index context, Index held) const override;
  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override;
  bool by_row() const override {
    return settings_.format.axis == kernels::Axis::channels && settings_.residual == Residual::none;
  }
  Footprint footprint(Index rows, Index cols) const override;

 private:
  GroupCodecSettings settings_;
};

}  // namespace kvbench::methods
