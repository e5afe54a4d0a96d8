// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 by its definition: no table and no bit trick of the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

struct __half {
  unsigned short bits;
};

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half half) { return half.bits; }

/// NaN becomes 0x7fff, as by the hardware's instruction.
inline __half __float2half_rn(float x) {
  const unsigned sign = std::signbit(x) ? 0x8000u : 0u;
  if (std::isnan(x)) return {0x7fff};
  const float size = std::fabs(x);
  if (size >= 65520.0f) return {static_cast<unsigned short>(sign | 0x7c00u)};
  const int exponent = size == 0 ? -14 : std::max(std::ilogb(size), -14);
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // to even
  return {static_cast<unsigned short>(sign | ((static_cast<unsigned>(exponent + 14) << 10) + steps))};
}

inline float __half2float(__half half) {
  const int exponent = half.bits >> 10 & 31;
  const int fraction = half.bits & 1023;
  float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                             : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  if (exponent == 31) {
    size = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return (half.bits & 0x8000) != 0 ? -size : size;
}
