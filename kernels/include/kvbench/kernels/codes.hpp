// SPDX-License-Identifier: Apache-2.0
// Rows in fewer bits: numbers in groups, each with a scale, and one code per number. Every format of a quantiser is a
// value of GroupFormat, so that a new one needs no new kernel. Results are the same to the bit on every back end, but
// for the bits of a NaN: products and sums are never contracted, and each operation that a comment states is rounded
// once to fp32, in the order of the comment.
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// The numbers that share a scale.
enum class Axis {
  channels,  ///< `group` consecutive columns of one row
  tokens,    ///< `group` consecutive rows of one column
};

/// How the scale s and the offset o of a group follow from its numbers. Minima and maxima pass over NaN; a zero among
/// them is +0.
enum class Scale {
  range,    ///< o = min, s = (max - min) / peak
  largest,  ///< o = 0, s = max |x| / peak
  extreme,  ///< o = 0, s = x / -peak of the x with the largest |x|, the first of several; so ggml's q4_0 and q5_0
  /// l = min, h = max(0, max); e = l if |l| > |h|, else h; t = max((h - l) / peak, 1e-7), negative if e is h;
  /// q = e / t, rounded half away from 0. o = e, s = e / q; if q is 0, o = 0 and s = t. So mlx's affine mode.
  edge,
  /// s = max((max - min) / peak, 1e-6), o = -z s with z = -min / s, rounded half away from 0, in [0, peak]. So vLLM's
  /// int4_per_token_head.
  zero_point,
  norm,  ///< o = 0, s = |x|_2, squares summed in fp64 in the order of the group, and rounded after the root
};

/// What a code c says about y = (x - o) / s, which is 0 where it is NaN, and where s is 0 or not finite.
enum class Grid {
  steps,      ///< c = round(y) + zero, clamped to [0, 2^bits - 1]; decoded (c - zero) s + o
  minifloat,  ///< c = sign, exponent and mantissa of y, to nearest, ties to even, saturating; decoded value(c) s + o
  codebook,   ///< c = number of midpoints <= y; decoded levels[c] s + o
};

enum class Rounding {
  half_even,
  half_away,  ///< from zero
  half_up,    ///< c = trunc(y + (zero + 0.5)), clamped as above
};

/// The element type of stored scales and offsets: rounded to nearest, ties to even. Beyond the largest finite value,
/// f16 and bf16 become infinite (as in ggml; decoding may then give NaN) and e4m3 saturates at 448.
enum class Stored { f32, f16, bf16, e4m3 };

struct GroupFormat {
  Axis axis = Axis::channels;
  Index group = 32;  ///< numbers; the last group of a row or column may have fewer
  Scale scale = Scale::range;
  float peak = 15;  ///< positive; see Scale
  /// How y is computed: (x - o) / s, or x - o times an inverse of s: 1 / s, or peak / max |x| (Scale::largest only).
  enum class Quotient { divide, inverse, inverse_of_peak } quotient = Quotient::divide;
  Stored stored = Stored::f16;
  float unit = 1;  ///< what is stored is s / unit, and decoding multiplies by it again; offsets have no unit
  Grid grid = Grid::steps;
  int bits = 4;  ///< of a code, 1 to 8
  int zero = 0;  ///< 0 to 2^bits - 1; Grid::steps
  Rounding rounding = Rounding::half_even;
  /// Grid::minifloat: bits = 1 + exponent_bits + mantissa_bits, bias 2^(exponent_bits - 1) - 1, subnormals, and
  /// `largest` the largest finite value. Encoding makes no larger one; decoding reads codes of larger ones as numbers.
  int exponent_bits = 4, mantissa_bits = 3;
  float largest = 448;
  /// Grid::codebook: levels are divided by the norm of those of their group, if it is not 0, before they are multiplied
  /// by s; the norm as in Scale::norm.
  bool unit_norm = false;

  /// Rows and columns of the arrays of scales of an [n, d] array.
  constexpr Index scale_rows(Index n) const { return axis == Axis::tokens ? (n + group - 1) / group : n; }
  constexpr Index scale_cols(Index d) const { return axis == Axis::channels ? (d + group - 1) / group : d; }

  friend bool operator==(const GroupFormat&, const GroupFormat&) = default;
};

/// Scales of all groups.
template <template <class> class Ref>
struct GroupScales {
  Ref<const float> rows;  ///< [n, d]
  GroupFormat format;
  Ref<float> scale;  ///< [scale_rows, scale_cols] s in fp32
  /// The same shape: peak / max |x| where format.quotient says so, else 1 / s; 0 where s is 0 or not finite.
  Ref<float> inverse;
  Ref<float> offset;  ///< the same shape: o
  /// The same shape: s and o rounded to format.stored, in fp32 and times format.unit: what decoding multiplies by and
  /// adds.
  Ref<float> stored_scale, stored_offset;

  static constexpr auto fields(auto& op) {
    return std::tie(op.rows, op.format, op.scale, op.inverse, op.offset, op.stored_scale, op.stored_offset);
  }
};

/// One code per number. Which scales encode is the caller's choice: those in fp32, or the stored ones.
template <template <class> class Ref>
struct EncodeGroups {
  Ref<const float> rows;  ///< [n, d]
  GroupFormat format;
  /// As in GroupScales. Where format.quotient divides, `inverse` is not read and may be absent; elsewhere `scale`, and
  /// an inverse of 0 stands for s = 0.
  Ref<const float> scale, inverse, offset;
  Ref<const float> midpoints;  ///< [2^bits - 1, 1] increasing; absent but for Grid::codebook
  Ref<std::uint8_t> codes;     ///< [n, d]

  static constexpr auto fields(auto& op) {
    return std::tie(op.rows, op.format, op.scale, op.inverse, op.offset, op.midpoints, op.codes);
  }
};

/// The scales that fit codes of a codebook best, by least squares with weights x^2 over the numbers x of a group and
/// the levels L of their codes: s = sum ((x x) L) x / sum ((x x) L) L. Each product and each sum, in the order of the
/// group, is rounded to fp32; 0 where the second sum is not positive. So ggml's iq4_nl.
template <template <class> class Ref>
struct FitScales {
  Ref<const float> rows;  ///< [n, d]
  GroupFormat format;
  Ref<const std::uint8_t> codes;  ///< [n, d]
  Ref<const float> levels;        ///< [2^bits, 1]
  Ref<float> stored_scale;        ///< s as in GroupScales

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.format, op.codes, op.levels, op.stored_scale); }
};

template <template <class> class Ref>
struct DecodeGroups {
  Ref<const std::uint8_t> codes;  ///< [n, d]
  GroupFormat format;
  Ref<const float> scale, offset;  ///< stored_scale and stored_offset of GroupScales, or of FitScales
  Ref<const float> levels;         ///< [2^bits, 1]; absent but for Grid::codebook
  Ref<float> out;                  ///< [n, d]

  static constexpr auto fields(auto& op) {
    return std::tie(op.codes, op.format, op.scale, op.offset, op.levels, op.out);
  }
};

/// Each block of `block` columns times the Sylvester-Hadamard matrix / sqrt(block), which is its own inverse. For the
/// distances h = block/2, block/4, ..., 1 in this order, each pair (x[j], x[j + h]) with bit h of j clear becomes
/// (x[j] + x[j + h], x[j] - x[j + h]); in the end each number is multiplied by fp32(1 / sqrt(block)).
template <template <class> class Ref>
struct HadamardRows {
  Ref<const float> rows;  ///< [n, d]
  Index block = 64;       ///< a power of two that divides d
  Ref<float> out;         ///< [n, d], not the same memory as rows

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.block, op.out); }
};

/// out[i][j] = <rows[i], matrix[j]>, summed in fp64 in the order of the columns.
template <template <class> class Ref>
struct ProjectRows {
  Ref<const float> rows;    ///< [n, d]
  Ref<const float> matrix;  ///< [m, d]
  Ref<float> out;           ///< [n, m]

  static constexpr auto fields(auto& op) { return std::tie(op.rows, op.matrix, op.out); }
};

inline Cost cost(const GroupScales<Buffer>& a) {
  return {2 * elements(a.rows), bytes(a.rows, a.scale, a.inverse, a.offset, a.stored_scale, a.stored_offset)};
}
inline Cost cost(const EncodeGroups<Buffer>& a) {
  const auto& scale = a.format.quotient == GroupFormat::Quotient::divide ? a.scale : a.inverse;
  return {3 * elements(a.rows), bytes(a.rows, scale, a.offset, a.midpoints, a.codes)};
}
inline Cost cost(const FitScales<Buffer>& a) {
  return {6 * elements(a.rows), bytes(a.rows, a.codes, a.levels, a.stored_scale)};
}
inline Cost cost(const DecodeGroups<Buffer>& a) {
  return {2 * elements(a.out), bytes(a.codes, a.scale, a.offset, a.levels, a.out)};
}
inline Cost cost(const HadamardRows<Buffer>& a) {
  double sums = 1;  // and one product
  for (Index width = 1; width < a.block; width *= 2) sums += 1;
  return {sums * elements(a.rows), bytes(a.rows, a.out)};
}
inline Cost cost(const ProjectRows<Buffer>& a) {
  return {2 * elements(a.rows) * static_cast<double>(a.matrix.rows()), bytes(a.rows, a.matrix, a.out)};
}

}  // namespace kvbench::kernels
