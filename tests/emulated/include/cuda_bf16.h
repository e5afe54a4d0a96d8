// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>

struct __nv_bfloat16 {
  unsigned short bits;
};

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }

/// To nearest, ties to even; NaN becomes 0x7fff, as by the hardware's instruction.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  if (std::isnan(x)) return {0x7fff};
  const auto bits = std::bit_cast<unsigned>(x);
  const unsigned below = bits & 0xffffu;
  const unsigned kept = bits >> 16;
  const bool up = below > 0x8000u || (below == 0x8000u && (kept & 1u) != 0);
  return {static_cast<unsigned short>(kept + (up ? 1 : 0))};
}
