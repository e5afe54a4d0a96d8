// SPDX-License-Identifier: Apache-2.0
// First what a scale is the quotient of is written in the place of the scale, then all scales are computed at once.
#include "minifloats.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

using Scales = GroupScales<HostMatrix>;

Vec load_or_nan(const float* p, Index count) {
  if (count >= W) return load(p);
  Vec x = broadcast(__builtin_nanf(""));
  __builtin_memcpy(&x, p, static_cast<std::size_t>(count) * sizeof(float));
  return x;
}

Vec smaller(Vec a, Vec b) { return a < b ? a : b; }  // b where a is NaN
Vec larger(Vec a, Vec b) { return a > b ? a : b; }

struct Extremes {
  float low, high;
};

/// +inf and -inf where no number is in it.
Extremes range_of(const float* x, Index count) {
  Vec low = broadcast(kInfinity), high = broadcast(-kInfinity);
  for (Index k = 0; k < count; k += W) {
    const Vec numbers = load_or_nan(x + k, count - k);
    low = smaller(numbers, low);
    high = larger(numbers, high);
  }
  return {fold(low, smaller)[0] + 0.0f, fold(high, larger)[0] + 0.0f};
}

/// The number of the largest magnitude, the first of several; +0 where there is none but zeros.
float extreme_of(const float* x, Index count, Extremes range) {
  if (!(range.high > 0) && !(range.low < 0)) return 0;
  if (range.high != -range.low) return range.high > -range.low ? range.high : range.low;
  for (Index k = 0; k < count; ++k)
    if (x[k] == range.high || x[k] == range.low) return x[k];
  return 0;
}

struct Scaled {
  float scale, offset;
};

float at_least(float x, float least) { return x > least ? x : least; }  // least where x is NaN

/// Scale::edge
Scaled scale_of_edge(float low, float high, float peak) {
  high = at_least(high, 0);
  const bool is_low = __builtin_fabsf(low) > __builtin_fabsf(high);
  const float edge = is_low ? low : high, width = at_least((high - low) / peak, 1e-7f);
  const float step = is_low ? width : -width, code = __builtin_roundf(edge / step);
  return code == 0 ? Scaled{step, 0} : Scaled{edge / code, edge};
}

/// Of a range, the numerator of the scale where the scale is a quotient of it, else the scale; and the offset.
Scaled scale_of_range(const GroupFormat& format, float low, float high) {
  if (format.scale == Scale::range) return {high - low, low};
  if (format.scale == Scale::edge) return scale_of_edge(low, high, format.peak);
  const float step = at_least((high - low) / format.peak, 1e-6f);
  const float zero = at_least(__builtin_roundf(-low / step), 0);
  return {step, 0.0f - (zero < format.peak ? zero : format.peak) * step};
}

bool has_range(Scale scale) { return scale == Scale::range || scale == Scale::edge || scale == Scale::zero_point; }

float norm_of(const float* x, Index count) {
  double sum = 0;
  for (Index k = 0; k < count; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  return static_cast<float>(__builtin_sqrt(sum));
}

void gather_along_channels(const Scales& op) {
  const Index n = op.rows.rows, d = op.rows.cols;
  for (Index i = 0; i < n; ++i)
    for (Index g = 0; g < op.scale.cols; ++g) {
      const float* x = op.rows.data + i * op.rows.stride + g * op.format.group;
      const Index count = min(op.format.group, d - g * op.format.group);
      float& extent = op.scale.data[i * op.scale.stride + g];
      float& offset = op.offset.data[i * op.offset.stride + g];
      offset = 0;
      if (op.format.scale == Scale::norm) {
        extent = norm_of(x, count);
        continue;
      }
      const Extremes range = range_of(x, count);
      if (has_range(op.format.scale)) {
        const Scaled scaled = scale_of_range(op.format, range.low, range.high);
        extent = scaled.scale;
        offset = scaled.offset;
      } else {
        const float extreme = extreme_of(x, count, range);
        extent = op.format.scale == Scale::extreme ? extreme : __builtin_fabsf(extreme);
      }
    }
}

/// Adds a row to what is known of each column: extremes in `high` (magnitudes for Scale::largest), minima in `low`.
void add_row(Scale scale, const float* x, Index d, float* low, float* high) {
  const auto each = [&](auto update) {
    Index c = 0;
    for (; c + W <= d; c += W) store(high + c, update(load(x + c), load(high + c)));
    for (; c < d; ++c) high[c] = update(broadcast(x[c]), broadcast(high[c]))[0];
  };
  if (scale == Scale::largest) return each([](Vec a, Vec b) { return larger(magnitude(a), b); });
  if (scale == Scale::extreme) return each([](Vec a, Vec b) { return magnitude(a) > magnitude(b) ? a : b; });
  each(larger);
  for (Index c = 0; c < d; ++c) low[c] = x[c] < low[c] ? x[c] : low[c];
}

void gather_along_tokens(const Scales& op, Context& context) {
  const Index n = op.rows.rows, d = op.rows.cols;
  const Scale scale = op.format.scale;
  const bool ranges = has_range(scale);
  double* const squares = scratch<double>(context, 0, d);
  for (Index g = 0; g < op.scale.rows; ++g) {
    float* extents = op.scale.data + g * op.scale.stride;
    float* offsets = op.offset.data + g * op.offset.stride;
    for (Index c = 0; c < d; ++c) {
      extents[c] = ranges ? -kInfinity : 0;
      offsets[c] = ranges ? kInfinity : 0;
      squares[c] = 0;
    }
    const Index first = g * op.format.group;
    for (Index i = first; i < first + min(op.format.group, n - first); ++i) {
      const float* x = op.rows.data + i * op.rows.stride;
      if (scale == Scale::norm)
        for (Index c = 0; c < d; ++c) squares[c] += static_cast<double>(x[c]) * static_cast<double>(x[c]);
      else
        add_row(scale, x, d, offsets, extents);
    }
    if (scale == Scale::norm)
      for (Index c = 0; c < d; ++c) extents[c] = static_cast<float>(__builtin_sqrt(squares[c]));
    if (!ranges) continue;
    for (Index c = 0; c < d; ++c) {
      const Scaled scaled = scale_of_range(op.format, offsets[c] + 0.0f, extents[c] + 0.0f);
      extents[c] = scaled.scale;
      offsets[c] = scaled.offset;
    }
  }
}

Vec as_stored(Stored stored, Vec x) {
  if (stored == Stored::f32) return x;
  if (stored == Stored::bf16) {
    const IntVec bits = IntVec(x), cut = (bits + 0x7fff + (bits >> 16 & 1)) & static_cast<int>(0xffff0000);
    return select(x == x, Vec(cut), x);
  }
  const bool f16 = stored == Stored::f16;
  const Vec limit = broadcast(f16 ? 0x1p17f : 448.0f);
  const Vec a = smaller(magnitude(x), limit);
  Vec rounded = f16 ? round_mantissa(a, 10, -14) : round_mantissa(a, 3, -6);
  if (f16) rounded = select(rounded > 65504.0f, broadcast(kInfinity), rounded);
  const Vec signed_result = Vec(IntVec(rounded) | (IntVec(x) & INT32_MIN));
  return select(x == x, signed_result, x);
}

struct Finished {
  Vec scale, inverse, stored_scale, stored_offset;
};

Finished finish(const GroupFormat& format, Vec extent, Vec offset) {
  const bool is_scale = format.scale == Scale::norm || format.scale == Scale::edge || format.scale == Scale::zero_point;
  const float divisor = is_scale ? 1 : format.scale == Scale::extreme ? -format.peak : format.peak;
  const bool of_peak = format.quotient == GroupFormat::Quotient::inverse_of_peak;
  const Vec scale = extent / divisor;
  const IntVec usable = (magnitude(scale) <= __FLT_MAX__) & (scale != 0);
  const Vec inverse = broadcast(of_peak ? format.peak : 1) / (of_peak ? magnitude(extent) : scale);
  return {scale, select(usable, inverse, Vec{}), as_stored(format.stored, scale / format.unit) * format.unit,
          as_stored(format.stored, offset)};
}

}  // namespace

template <>
void run(const GroupScales<HostMatrix>& op, Context& context) {
  if (op.format.axis == Axis::tokens)
    gather_along_tokens(op, context);
  else
    gather_along_channels(op);
  const Index count = op.scale.rows * op.scale.cols;  // all of these arrays are dense
  for (Index k = 0; k < count; k += W) {
    const auto bytes = static_cast<std::size_t>(min(W, count - k)) * sizeof(float);
    Vec extent = broadcast(1.0f), offset{};
    __builtin_memcpy(&extent, op.scale.data + k, bytes);
    __builtin_memcpy(&offset, op.offset.data + k, bytes);
    const Finished group = finish(op.format, extent, offset);
    __builtin_memcpy(op.scale.data + k, &group.scale, bytes);
    __builtin_memcpy(op.inverse.data + k, &group.inverse, bytes);
    __builtin_memcpy(op.stored_scale.data + k, &group.stored_scale, bytes);
    __builtin_memcpy(op.stored_offset.data + k, &group.stored_offset, bytes);
  }
}

template <>
void run(const FitScales<HostMatrix>& op, Context&) {
  const GroupFormat& format = op.format;
  const bool tokens = format.axis == Axis::tokens;
  const Index step = tokens ? op.rows.stride : 1, code_step = tokens ? op.codes.stride : 1;
  for (Index r = 0; r < op.stored_scale.rows; ++r)
    for (Index c = 0; c < op.stored_scale.cols; ++c) {
      const Index i = tokens ? r * format.group : r, j = tokens ? c : c * format.group;
      const Index count = min(format.group, tokens ? op.rows.rows - i : op.rows.cols - j);
      const float* x = op.rows.data + i * op.rows.stride + j;
      const std::uint8_t* code = op.codes.data + i * op.codes.stride + j;
      float products = 0, squares = 0;
      for (Index k = 0; k < count; ++k, x += step, code += code_step) {
        const float level = op.levels.data[*code * op.levels.stride], weighted = *x * *x * level;
        products += weighted * *x;
        squares += weighted * level;
      }
      const Vec scale = broadcast((squares > 0 ? products / squares : 0) / format.unit);
      op.stored_scale.data[r * op.stored_scale.stride + c] = as_stored(format.stored, scale)[0] * format.unit;
    }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
