// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <kvbench/kernels/half.hpp>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

using Quotient = GroupFormat::Quotient;

/// A minifloat of GroupFormat: a code is sign, exponent and mantissa.
struct Minifloat {
  int exponent_bits, mantissa_bits;
  float largest;

  int lowest_exponent() const { return 2 - (1 << (exponent_bits - 1)); }

  unsigned code(float y) const {
    const float magnitude = std::min(std::fabs(y), largest);
    const int exponent = magnitude == 0 ? lowest_exponent() : std::max(std::ilogb(magnitude), lowest_exponent());
    const float steps = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));  // of the exponent's spacing
    // 2^mantissa_bits steps of a normal number are its implicit bit, which makes the exponent one larger.
    const int unsigned_code = ((exponent - lowest_exponent()) << mantissa_bits) + static_cast<int>(steps);
    return static_cast<unsigned>(unsigned_code) | unsigned{std::signbit(y)} << (exponent_bits + mantissa_bits);
  }

  float value(unsigned code) const {
    const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
    const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    const int steps = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    const float magnitude =
        std::ldexp(static_cast<float>(steps), std::max(exponent - 1, 0) + lowest_exponent() - mantissa_bits);
    return (code >> (exponent_bits + mantissa_bits) & 1u) != 0 ? -magnitude : magnitude;
  }
};

float as_stored(Stored stored, float x) {
  constexpr Minifloat e4m3{4, 3, 448};
  if (stored == Stored::f32 || std::isnan(x)) return x;
  if (stored == Stored::bf16) return widen_bf16(narrow_bf16(x));
  return stored == Stored::f16 ? widen_f16(narrow_f16(x)) : e4m3.value(e4m3.code(x));
}

/// Calls f(row, column, numbers) for each group: its place among the scales, and where its numbers are in [n, d].
template <class F>
void for_each_group(const GroupFormat& format, Index n, Index d, F f) {
  const bool tokens = format.axis == Axis::tokens;
  for (Index r = 0; r < format.scale_rows(n); ++r)
    for (Index c = 0; c < format.scale_cols(d); ++c) {
      std::vector<std::pair<Index, Index>> numbers;
      const Index begin = (tokens ? r : c) * format.group;
      for (Index k = begin; k < std::min(begin + format.group, tokens ? n : d); ++k)
        numbers.emplace_back(tokens ? k : r, tokens ? c : k);
      f(r, c, numbers);
    }
}

float norm(const std::vector<float>& group) {
  double sum = 0;
  for (const double x : group) sum += x * x;
  return static_cast<float>(std::sqrt(sum));
}

struct ScaleOfGroup {
  float scale = 0, offset = 0;
  float largest = 0;  ///< |x|
};

/// Scale::edge
ScaleOfGroup scale_of_edge(float low, float high, float peak) {
  const bool is_low = std::fabs(low) > std::fabs(high);
  const float edge = is_low ? low : high, width = std::fmax((high - low) / peak, 1e-7f);
  const float step = is_low ? width : -width, code = std::round(edge / step);
  return code == 0 ? ScaleOfGroup{step, 0} : ScaleOfGroup{edge / code, edge};
}

/// Scale::zero_point
ScaleOfGroup scale_of_zero_point(float low, float high, float peak) {
  const float step = std::fmax((high - low) / peak, 1e-6f);
  return {step, 0.0f - std::fmin(std::fmax(std::round(-low / step), 0.0f), peak) * step};
}

ScaleOfGroup scale_of(const GroupFormat& format, const std::vector<float>& group) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  float extreme = 0;
  for (const float x : group) {
    if (x < low) low = x;
    if (x > high) high = x;
    if (std::fabs(x) > std::fabs(extreme)) extreme = x;
  }
  low += 0.0f;  // -0 becomes +0
  high += 0.0f;
  const float largest = std::fabs(extreme);
  if (format.scale == Scale::range) return {(high - low) / format.peak, low, largest};
  if (format.scale == Scale::edge) return scale_of_edge(low, std::max(high, 0.0f), format.peak);
  if (format.scale == Scale::zero_point) return scale_of_zero_point(low, high, format.peak);
  if (format.scale == Scale::largest) return {largest / format.peak, 0, largest};
  if (format.scale == Scale::extreme) return {extreme / -format.peak, 0, largest};
  return {norm(group), 0, largest};
}

float inverse_of(const GroupFormat& format, const ScaleOfGroup& group) {
  if (group.scale == 0 || !std::isfinite(group.scale)) return 0;
  return format.quotient == Quotient::inverse_of_peak ? format.peak / group.largest : 1 / group.scale;
}

/// y of the number (i, j), whose scale is at (r, c).
float quotient(const EncodeGroups<HostMatrix>& op, Index i, Index j, Index r, Index c) {
  const float difference = op.rows(i, j) - op.offset(r, c);
  float y = 0;
  if (op.format.quotient == Quotient::divide) {
    const float scale = op.scale(r, c);
    if (scale != 0 && std::isfinite(scale)) y = difference / scale;
  } else if (const float inverse = op.inverse(r, c); inverse != 0) {
    y = difference * inverse;
  }
  return std::isnan(y) ? 0 : y;
}

float rounded_step(const GroupFormat& format, float y) {
  const auto zero = static_cast<float>(format.zero);
  if (format.rounding == Rounding::half_even) return std::nearbyint(y) + zero;
  if (format.rounding == Rounding::half_away) return std::round(y) + zero;
  return std::trunc(y + (zero + 0.5f));
}

std::uint8_t code_of(const EncodeGroups<HostMatrix>& op, float y) {
  const GroupFormat& format = op.format;
  if (format.grid == Grid::steps) {
    const auto highest = static_cast<float>((1 << format.bits) - 1);
    return static_cast<std::uint8_t>(std::clamp(rounded_step(format, y), 0.0f, highest));
  }
  if (format.grid == Grid::minifloat)
    return static_cast<std::uint8_t>(Minifloat{format.exponent_bits, format.mantissa_bits, format.largest}.code(y));
  int code = 0;
  for (Index k = 0; k < (1 << format.bits) - 1; ++k) code += op.midpoints[k] <= y ? 1 : 0;
  return static_cast<std::uint8_t>(code);
}

float level_of(const DecodeGroups<HostMatrix>& op, std::uint8_t code) {
  if (op.format.grid == Grid::codebook) return op.levels[code];
  if (op.format.grid == Grid::steps) return static_cast<float>(code - op.format.zero);
  return Minifloat{op.format.exponent_bits, op.format.mantissa_bits, op.format.largest}.value(code);
}

void transform_block(float* x, Index block) {
  for (Index h = block / 2; h > 0; h /= 2)
    for (Index j = 0; j < block; ++j) {
      if ((j & h) != 0) continue;
      const float a = x[j], b = x[j + h];
      x[j] = a + b;
      x[j + h] = a - b;
    }
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(block)));
  for (Index j = 0; j < block; ++j) x[j] *= factor;
}

}  // namespace

template <>
void run(const GroupScales<HostMatrix>& op, Context&) {
  for_each_group(op.format, op.rows.rows, op.rows.cols, [&](Index r, Index c, const auto& numbers) {
    std::vector<float> values;
    for (const auto& [i, j] : numbers) values.push_back(op.rows(i, j));
    const ScaleOfGroup group = scale_of(op.format, values);
    op.scale(r, c) = group.scale;
    op.inverse(r, c) = inverse_of(op.format, group);
    op.offset(r, c) = group.offset;
    op.stored_scale(r, c) = as_stored(op.format.stored, group.scale / op.format.unit) * op.format.unit;
    op.stored_offset(r, c) = as_stored(op.format.stored, group.offset);
  });
}

template <>
void run(const EncodeGroups<HostMatrix>& op, Context&) {
  for_each_group(op.format, op.rows.rows, op.rows.cols, [&](Index r, Index c, const auto& numbers) {
    for (const auto& [i, j] : numbers) op.codes(i, j) = code_of(op, quotient(op, i, j, r, c));
  });
}

template <>
void run(const FitScales<HostMatrix>& op, Context&) {
  for_each_group(op.format, op.rows.rows, op.rows.cols, [&](Index r, Index c, const auto& numbers) {
    float products = 0, squares = 0;
    for (const auto& [i, j] : numbers) {
      const float x = op.rows(i, j), level = op.levels[op.codes(i, j)];
      products += x * x * level * x;
      squares += x * x * level * level;
    }
    const float scale = squares > 0 ? products / squares : 0;
    op.stored_scale(r, c) = as_stored(op.format.stored, scale / op.format.unit) * op.format.unit;
  });
}

template <>
void run(const DecodeGroups<HostMatrix>& op, Context&) {
  for_each_group(op.format, op.codes.rows, op.codes.cols, [&](Index r, Index c, const auto& numbers) {
    std::vector<float> levels;
    for (const auto& [i, j] : numbers) levels.push_back(level_of(op, op.codes(i, j)));
    if (const float divisor = op.format.unit_norm ? norm(levels) : 0; divisor != 0)
      for (float& level : levels) level /= divisor;
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const auto [i, j] = numbers[k];
      op.out(i, j) = levels[k] * op.scale(r, c) + op.offset(r, c);
    }
  });
}

template <>
void run(const HadamardRows<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i) {
    std::copy_n(op.rows.row(i), op.rows.cols, op.out.row(i));
    for (Index c = 0; c < op.rows.cols; c += op.block) transform_block(op.out.row(i) + c, op.block);
  }
}

template <>
void run(const ProjectRows<HostMatrix>& op, Context&) {
  for (Index i = 0; i < op.rows.rows; ++i)
    for (Index j = 0; j < op.matrix.rows; ++j) {
      double sum = 0;
      for (Index c = 0; c < op.rows.cols; ++c) sum += static_cast<double>(op.rows(i, c)) * op.matrix(j, c);
      op.out(i, j) = static_cast<float>(sum);
    }
}

}  // namespace kvbench::kernels::ref
