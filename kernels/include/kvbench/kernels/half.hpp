// SPDX-License-Identifier: Apache-2.0
// Scalar conversion between fp32 and the 16-bit formats: exact to fp32, to 16 bits rounding to nearest with ties to
// even.
#pragma once

#include <bit>
#include <cstdint>

namespace kvbench {

inline float float_from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

inline float widen_bf16(std::uint16_t half) { return float_from_bits(std::uint32_t{half} << 16); }

inline float widen_f16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);  // inf, NaN
  if (magnitude >= 0x0400u) return float_from_bits(sign | ((magnitude << 13) + 0x38000000u));         // normal
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;                                   // exact
  return float_from_bits(sign | bits_of(subnormal));
}

inline std::uint16_t narrow_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // NaN stays quiet
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline std::uint16_t narrow_f16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint16_t sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));  // quiet NaN
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: let the fp32 adder round at 2^-24, the spacing of the f16 subnormals
    return static_cast<std::uint16_t>(sign | (bits_of(float_from_bits(magnitude) + 0.5f) - bits_of(0.5f)));
  }
  const std::uint32_t rounded = magnitude + 0x0fffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace kvbench
