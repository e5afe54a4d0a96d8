// SPDX-License-Identifier: Apache-2.0
// The squared error of unit vectors that TurboQuant rounds to b bits is at most sqrt(3) pi / 2 4^-b on average
// (arXiv 2504.19874, theorem 1). docs/theory/turboquant.distortion.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/checks/decoded_rows.hpp>

namespace kvbench::faithful {

/// The decoder of keys at a number of bits.
using DecoderOfBits = std::function<KeyDecoder(int bits)>;

void check_distortion(bounds::CheckContext& context, const DecoderOfBits& decoder);

bounds::Check turboquant_distortion();

}  // namespace kvbench::faithful
