// SPDX-License-Identifier: Apache-2.0
// The codec of most quantisers: numbers in groups, each with a scale of its own (kernels/codes.hpp).
#pragma once

#include <kvbench/kernels/codes.hpp>
#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/quantisation/lloyd_max.hpp>

namespace kvbench::methods {

/// Which rows are encoded while tokens are decoded. See Codec::encoded().
enum class Residual {
  none,     ///< every row at once
  batches,  ///< the last n mod R rows of a prompt are not; decoded ones are once R rows wait, after that step's queries
  window,   ///< the last R rows of a prompt are not; later one row is after each step's queries, and R wait
};

struct GroupCodecSettings {
  kernels::GroupFormat format;
  std::shared_ptr<const Codebook> codebook;  ///< Grid::codebook only
  bool encode_with_stored = true;            ///< codes follow from the scales as stored, otherwise from those in fp32
  Index hadamard = 0;  ///< rows are rotated in blocks of so many columns before they are encoded; 0: not
  Residual residual = Residual::none;
  Index waiting = 0;  ///< R
};

class GroupCodec : public Codec {
 public:
  explicit GroupCodec(const GroupCodecSettings& settings) : settings_(settings) {}

  Index encoded(Index context, Index held) const override;
  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override;
  Footprint footprint(Index rows, Index cols) const override;

 private:
  GroupCodecSettings settings_;
};

}  // namespace kvbench::methods
