// SPDX-License-Identifier: Apache-2.0
// The formats of ggml's blocks (ggml_blocks.cpp), by which tests compare them with ggml itself.
#pragma once

#include <kvbench/kernels/codes.hpp>
#include <kvbench/methods/quantisation/lloyd_max.hpp>

namespace kvbench::methods::ggml {

inline constexpr Index block_channels = 32;  // channels

/// As llama.cpp rounds on x86: ties to even.
inline constexpr kernels::GroupFormat q8_0 = {.group = block_channels,
                                              .scale = kernels::Scale::largest,
                                              .peak = 127,
                                              .quotient = kernels::GroupFormat::Quotient::inverse_of_peak,
                                              .bits = 8,
                                              .zero = 128,
                                              .rounding = kernels::Rounding::half_even};
/// As ggml's reference function rounds: ties away from zero, and another inverse.
inline constexpr kernels::GroupFormat q8_0_reference = {.group = block_channels,
                                                        .scale = kernels::Scale::largest,
                                                        .peak = 127,
                                                        .quotient = kernels::GroupFormat::Quotient::inverse,
                                                        .bits = 8,
                                                        .zero = 128,
                                                        .rounding = kernels::Rounding::half_away};
constexpr kernels::GroupFormat extreme_of_bits(int bits) {
  return {.group = block_channels,
          .scale = kernels::Scale::extreme,
          .peak = static_cast<float>(1 << (bits - 1)),
          .quotient = kernels::GroupFormat::Quotient::inverse,
          .bits = bits,
          .zero = 1 << (bits - 1),
          .rounding = kernels::Rounding::half_up};
}
inline constexpr kernels::GroupFormat q4_0 = extreme_of_bits(4);
inline constexpr kernels::GroupFormat q5_0 = extreme_of_bits(5);
/// Of ik_llama.cpp, which decodes both with the scale that FitScales computes from steps_codebook().
inline constexpr kernels::GroupFormat q6_0 = extreme_of_bits(6);
inline constexpr kernels::GroupFormat q4_0_ik = [] {
  kernels::GroupFormat format = extreme_of_bits(4);
  format.rounding = kernels::Rounding::half_even;
  return format;
}();
/// The steps of `bits` bits as levels, from -2^(bits - 1) on.
std::shared_ptr<const Codebook> steps_codebook(int bits);

constexpr kernels::GroupFormat range_of_bits(int bits) {
  return {.group = block_channels,
          .scale = kernels::Scale::range,
          .peak = static_cast<float>((1 << bits) - 1),
          .quotient = kernels::GroupFormat::Quotient::inverse,
          .bits = bits,
          .rounding = kernels::Rounding::half_up};
}
inline constexpr kernels::GroupFormat q4_1 = range_of_bits(4);
inline constexpr kernels::GroupFormat q5_1 = range_of_bits(5);

/// Codes follow from the scale that gives the number of the largest magnitude the level -127. They are decoded with the
/// scale that FitScales computes.
inline constexpr kernels::GroupFormat iq4_nl = {.group = block_channels,
                                                .scale = kernels::Scale::extreme,
                                                .peak = 127,
                                                .quotient = kernels::GroupFormat::Quotient::inverse,
                                                .grid = kernels::Grid::codebook,
                                                .bits = 4};
/// The 16 levels of iq4_nl, from -127 to 113, none of which is 0.
std::shared_ptr<const Codebook> iq4_nl_codebook();

}  // namespace kvbench::methods::ggml
