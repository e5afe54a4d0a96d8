// SPDX-License-Identifier: Apache-2.0
// Rounding to numbers of few mantissa bits.
#pragma once

#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// The exponents of numbers a >= 0, biased as in fp32, and at least `lowest`.
inline IntVec biased_exponents(Vec a, int lowest) {
  const IntVec exponents = IntVec(a) >> 23;
  return select(exponents > lowest + 127, exponents, broadcast(lowest + 127));
}

/// 2^23 times the spacing of such numbers: what is added to it is rounded to this spacing, with ties to even.
inline Vec rounding_shift(IntVec exponents, int mantissa_bits) { return Vec((exponents + (23 - mantissa_bits)) << 23); }

/// a >= 0 rounded to `mantissa_bits`; below 2^lowest as subnormal numbers.
inline Vec round_mantissa(Vec a, int mantissa_bits, int lowest) {
  const Vec shift = rounding_shift(biased_exponents(a, lowest), mantissa_bits);
  return (a + shift) - shift;
}

inline int lowest_exponent(const GroupFormat& format) { return 2 - (1 << (format.exponent_bits - 1)); }

/// Codes of numbers that are not NaN.
inline IntVec minifloat_codes(const GroupFormat& format, Vec y) {
  Vec a = magnitude(y);
  a = select(a < format.largest, a, broadcast(format.largest));
  const int lowest = lowest_exponent(format);
  const IntVec exponents = biased_exponents(a, lowest);
  const Vec shift = rounding_shift(exponents, format.mantissa_bits);
  // The implicit bit of a normal number makes the exponent one larger.
  const IntVec codes = ((exponents - (lowest + 127)) << format.mantissa_bits) + (IntVec(a + shift) - IntVec(shift));
  return codes | ((IntVec(y) < 0) & (1 << (format.exponent_bits + format.mantissa_bits)));
}

inline float minifloat_value(const GroupFormat& format, int code) {
  const int mantissa = code & ((1 << format.mantissa_bits) - 1);
  const int exponent = code >> format.mantissa_bits & ((1 << format.exponent_bits) - 1);
  const int steps = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  const float size = __builtin_ldexpf(
      static_cast<float>(steps), (exponent == 0 ? 0 : exponent - 1) + lowest_exponent(format) - format.mantissa_bits);
  return (code >> (format.exponent_bits + format.mantissa_bits) & 1) != 0 ? -size : size;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
