// SPDX-License-Identifier: Apache-2.0
// One thread per element, and one per group where a group is walked: neighbours read neighbouring columns where groups
// run along tokens. The build forbids contraction of products and sums (CMakeLists.txt), because codes must be those of
// the host.
#include <cfloat>

#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

using Quotient = GroupFormat::Quotient;

/// The numbers of one group: (i + k, j) or (i, j + k) for k < count.
struct Group {
  Index i, j, count;
  bool tokens;

  __device__ Index row(Index k) const { return tokens ? i + k : i; }
  __device__ Index col(Index k) const { return tokens ? j : j + k; }
};

/// The group whose scale is at (r, c).
__device__ Group group_at(const GroupFormat& format, Index n, Index d, Index r, Index c) {
  const bool tokens = format.axis == Axis::tokens;
  const Index begin = (tokens ? r : c) * format.group;
  return {tokens ? begin : r, tokens ? c : begin, min(format.group, (tokens ? n : d) - begin), tokens};
}

__device__ bool is_finite(float x) { return fabsf(x) <= FLT_MAX; }

/// The spacing of a minifloat's numbers at magnitude a, times 2^23: what is added to a is rounded to this spacing.
__device__ float rounding_shift(float a, int mantissa_bits, int lowest_exponent) {
  const int exponent = max(static_cast<int>(__float_as_uint(a) >> 23), lowest_exponent + 127);
  return __uint_as_float(static_cast<unsigned>(exponent + 23 - mantissa_bits) << 23);
}

__device__ int lowest_exponent(const GroupFormat& format) { return 2 - (1 << (format.exponent_bits - 1)); }

__device__ unsigned minifloat_code(const GroupFormat& format, float y) {
  const float a = fminf(fabsf(y), format.largest);
  const float shift = rounding_shift(a, format.mantissa_bits, lowest_exponent(format));
  const int exponent = max(static_cast<int>(__float_as_uint(a) >> 23) - 127 - lowest_exponent(format), 0);
  const unsigned steps = __float_as_uint(a + shift) - __float_as_uint(shift);
  const unsigned sign = __float_as_uint(y) >> 31 << (format.exponent_bits + format.mantissa_bits);
  return (static_cast<unsigned>(exponent << format.mantissa_bits) + steps) | sign;
}

__device__ float minifloat_value(const GroupFormat& format, unsigned code) {
  const int mantissa = static_cast<int>(code & ((1u << format.mantissa_bits) - 1));
  const int exponent = static_cast<int>(code >> format.mantissa_bits & ((1u << format.exponent_bits) - 1));
  const int steps = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  const float magnitude =
      ldexpf(static_cast<float>(steps), max(exponent - 1, 0) + lowest_exponent(format) - format.mantissa_bits);
  return (code >> (format.exponent_bits + format.mantissa_bits) & 1u) != 0 ? -magnitude : magnitude;
}

__device__ float as_stored(Stored stored, float x) {
  if (stored == Stored::f32 || isnan(x)) return x;
  if (stored == Stored::bf16) {
    const unsigned bits = __float_as_uint(x);
    return __uint_as_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
  }
  const bool f16 = stored == Stored::f16;
  const float a = fminf(fabsf(x), f16 ? 0x1p17f : 448.0f);
  const float shift = f16 ? rounding_shift(a, 10, -14) : rounding_shift(a, 3, -6);
  const float rounded = (a + shift) - shift;
  return copysignf(f16 && rounded > 65504.0f ? INFINITY : rounded, x);
}

struct ScaleOfGroup {
  float scale, offset, largest;
};

/// Scale::edge
__device__ ScaleOfGroup scale_of_edge(float low, float high, float peak) {
  const bool is_low = fabsf(low) > fabsf(high);
  const float edge = is_low ? low : high, width = fmaxf((high - low) / peak, 1e-7f);
  const float step = is_low ? width : -width, code = roundf(edge / step);
  return code == 0 ? ScaleOfGroup{step, 0, 0} : ScaleOfGroup{edge / code, edge, 0};
}

/// Scale::zero_point
__device__ ScaleOfGroup scale_of_zero_point(float low, float high, float peak) {
  const float step = fmaxf((high - low) / peak, 1e-6f);
  return {step, 0.0f - fminf(fmaxf(roundf(-low / step), 0.0f), peak) * step, 0};
}

__device__ ScaleOfGroup scale_of(const GroupScales<DeviceMatrix>& op, const Group& group) {
  float low = INFINITY, high = -INFINITY, extreme = 0;
  double squares = 0;
  for (Index k = 0; k < group.count; ++k) {
    const float x = op.rows(group.row(k), group.col(k));
    low = x < low ? x : low;
    high = x > high ? x : high;
    extreme = fabsf(x) > fabsf(extreme) ? x : extreme;
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  low += 0.0f;  // -0 becomes +0
  high += 0.0f;
  const float largest = fabsf(extreme);
  switch (op.format.scale) {
    case Scale::range:
      return {(high - low) / op.format.peak, low, largest};
    case Scale::edge:
      return scale_of_edge(low, fmaxf(high, 0.0f), op.format.peak);
    case Scale::zero_point:
      return scale_of_zero_point(low, high, op.format.peak);
    case Scale::largest:
      return {largest / op.format.peak, 0, largest};
    case Scale::extreme:
      return {extreme / -op.format.peak, 0, largest};
    default:
      return {static_cast<float>(sqrt(squares)), 0, largest};
  }
}

__global__ void group_scales(GroupScales<DeviceMatrix> op) {
  const GroupFormat& format = op.format;
  for (Index e = first_index(); e < op.scale.rows * op.scale.cols; e += index_stride()) {
    const Index r = e / op.scale.cols;
    const Index c = e % op.scale.cols;
    const auto group = scale_of(op, group_at(format, op.rows.rows, op.rows.cols, r, c));
    const float numerator = format.quotient == Quotient::inverse_of_peak ? format.peak : 1.0f;
    const float denominator = format.quotient == Quotient::inverse_of_peak ? group.largest : group.scale;
    op.scale(r, c) = group.scale;
    op.inverse(r, c) = group.scale != 0 && is_finite(group.scale) ? numerator / denominator : 0.0f;
    op.offset(r, c) = group.offset;
    op.stored_scale(r, c) = as_stored(format.stored, group.scale / format.unit) * format.unit;
    op.stored_offset(r, c) = as_stored(format.stored, group.offset);
  }
}

__device__ float quotient(const EncodeGroups<DeviceMatrix>& op, float difference, Index r, Index c) {
  float y = 0;
  if (op.format.quotient == Quotient::divide) {
    const float scale = op.scale(r, c);
    if (scale != 0 && is_finite(scale)) y = difference / scale;
  } else if (const float inverse = op.inverse(r, c); inverse != 0) {
    y = difference * inverse;
  }
  return isnan(y) ? 0.0f : y;
}

__device__ float rounded_step(const GroupFormat& format, float y) {
  const auto zero = static_cast<float>(format.zero);
  if (format.rounding == Rounding::half_even) return rintf(y) + zero;
  if (format.rounding == Rounding::half_away) return roundf(y) + zero;
  return truncf(y + (zero + 0.5f));
}

__device__ unsigned code_of(const EncodeGroups<DeviceMatrix>& op, float y) {
  const GroupFormat& format = op.format;
  if (format.grid == Grid::steps) {
    const auto highest = static_cast<float>((1 << format.bits) - 1);
    return static_cast<unsigned>(fminf(fmaxf(rounded_step(format, y), 0.0f), highest));
  }
  if (format.grid == Grid::minifloat) return minifloat_code(format, y);
  unsigned code = 0;
  for (unsigned step = 1u << (format.bits - 1); step > 0; step /= 2)
    if (op.midpoints[code + step - 1] <= y) code += step;
  return code;
}

__global__ void encode_groups(EncodeGroups<DeviceMatrix> op) {
  const Index d = op.rows.cols;
  const bool tokens = op.format.axis == Axis::tokens;
  for (Index e = first_index(); e < op.rows.rows * d; e += index_stride()) {
    const Index i = e / d;
    const Index j = e % d;
    const Index r = tokens ? i / op.format.group : i;
    const Index c = tokens ? j : j / op.format.group;
    const float difference = op.rows(i, j) - op.offset(r, c);
    op.codes(i, j) = static_cast<std::uint8_t>(code_of(op, quotient(op, difference, r, c)));
  }
}

/// One thread per group.
__global__ void fit_scales(FitScales<DeviceMatrix> op) {
  for (Index e = first_index(); e < op.stored_scale.rows * op.stored_scale.cols; e += index_stride()) {
    const Index r = e / op.stored_scale.cols;
    const Index c = e % op.stored_scale.cols;
    const Group group = group_at(op.format, op.rows.rows, op.rows.cols, r, c);
    float products = 0, squares = 0;
    for (Index k = 0; k < group.count; ++k) {
      const float x = op.rows(group.row(k), group.col(k));
      const float level = op.levels[op.codes(group.row(k), group.col(k))];
      products += x * x * level * x;
      squares += x * x * level * level;
    }
    const float scale = squares > 0 ? products / squares : 0.0f;
    op.stored_scale(r, c) = as_stored(op.format.stored, scale / op.format.unit) * op.format.unit;
  }
}

__device__ float level_of(const DecodeGroups<DeviceMatrix>& op, unsigned code) {
  if (op.format.grid == Grid::codebook) return op.levels[code];
  if (op.format.grid == Grid::steps) return static_cast<float>(static_cast<int>(code) - op.format.zero);
  return minifloat_value(op.format, code);
}

__global__ void decode_groups(DecodeGroups<DeviceMatrix> op) {
  const Index d = op.codes.cols;
  const bool tokens = op.format.axis == Axis::tokens;
  for (Index e = first_index(); e < op.codes.rows * d; e += index_stride()) {
    const Index i = e / d;
    const Index j = e % d;
    const Index r = tokens ? i / op.format.group : i;
    const Index c = tokens ? j : j / op.format.group;
    op.out(i, j) = level_of(op, op.codes(i, j)) * op.scale(r, c) + op.offset(r, c);
  }
}

/// For format.unit_norm: one thread per group.
__global__ void decode_unit_groups(DecodeGroups<DeviceMatrix> op) {
  for (Index e = first_index(); e < op.scale.rows * op.scale.cols; e += index_stride()) {
    const Index r = e / op.scale.cols;
    const Index c = e % op.scale.cols;
    const Group group = group_at(op.format, op.codes.rows, op.codes.cols, r, c);
    double squares = 0;
    for (Index k = 0; k < group.count; ++k) {
      const double level = level_of(op, op.codes(group.row(k), group.col(k)));
      squares += level * level;
    }
    const auto norm = static_cast<float>(sqrt(squares));
    for (Index k = 0; k < group.count; ++k) {
      const float level = level_of(op, op.codes(group.row(k), group.col(k)));
      op.out(group.row(k), group.col(k)) = (norm != 0 ? level / norm : level) * op.scale(r, c) + op.offset(r, c);
    }
  }
}

/// One warp per block of columns, which it transforms in `out`.
__global__ void hadamard_rows(HadamardRows<DeviceMatrix> op, float factor) {
  const Index blocks = op.rows.cols / op.block;
  for (Index e = first_warp(); e < op.rows.rows * blocks; e += warp_stride()) {
    const float* in = op.rows.row(e / blocks) + e % blocks * op.block;
    float* out = op.out.row(e / blocks) + e % blocks * op.block;
    for (Index j = lane_index(); j < op.block; j += kWarp) out[j] = in[j];
    for (Index h = op.block / 2; h > 0; h /= 2) {
      __syncwarp();
      for (Index pair = lane_index(); pair < op.block / 2; pair += kWarp) {
        const Index j = pair / h * 2 * h + pair % h;
        const float a = out[j], b = out[j + h];
        out[j] = a + b;
        out[j + h] = a - b;
      }
    }
    __syncwarp();
    for (Index j = lane_index(); j < op.block; j += kWarp) out[j] *= factor;
  }
}

__global__ void project_rows(ProjectRows<DeviceMatrix> op) {
  const Index m = op.matrix.rows;
  for (Index e = first_index(); e < op.rows.rows * m; e += index_stride()) {
    double sum = 0;
    for (Index c = 0; c < op.rows.cols; ++c)
      sum += static_cast<double>(op.rows(e / m, c)) * static_cast<double>(op.matrix(e % m, c));
    op.out(e / m, e % m) = static_cast<float>(sum);
  }
}

}  // namespace

template <>
void run(const GroupScales<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.scale.rows * op.scale.cols, group_scales, op);
}

template <>
void run(const EncodeGroups<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.rows * op.rows.cols, encode_groups, op);
}

template <>
void run(const FitScales<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.stored_scale.rows * op.stored_scale.cols, fit_scales, op);
}

template <>
void run(const DecodeGroups<DeviceMatrix>& op, Context& context) {
  if (op.format.unit_norm)
    launch_items(context, op.scale.rows * op.scale.cols, decode_unit_groups, op);
  else
    launch_items(context, op.codes.rows * op.codes.cols, decode_groups, op);
}

template <>
void run(const HadamardRows<DeviceMatrix>& op, Context& context) {
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(op.block)));
  launch_warps(context, op.rows.rows * (op.rows.cols / op.block), hadamard_rows, op, factor);
}

template <>
void run(const ProjectRows<DeviceMatrix>& op, Context& context) {
  launch_items(context, op.rows.rows * op.matrix.rows, project_rows, op);
}

}  // namespace kvbench::kernels::cuda
