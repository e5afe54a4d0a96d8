// SPDX-License-Identifier: Apache-2.0
// A row at a time, with the scales of all its columns side by side. Arrays of a row are padded to whole vectors.
#include "minifloats.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// What belongs to the columns of row i in an array of scales: a row of it, or each element `group` times.
void spread(const GroupFormat& format, HostMatrix<const float> values, Index i, Index d, float* out) {
  if (format.axis == Axis::tokens) {
    __builtin_memcpy(out, values.data + i / format.group * values.stride, static_cast<std::size_t>(d) * sizeof(float));
    return;
  }
  const float* value = values.data + i * values.stride;
  for (Index c = 0; c < d; ++value) {
    const Index end = c + min(format.group, d - c);
    for (; c < end; ++c) out[c] = *value;
  }
}

/// y of Grid from the numbers less their offsets.
Vec quotients(GroupFormat::Quotient quotient, Vec difference, Vec scale) {
  IntVec usable = scale != 0;  // a scale, or an inverse
  Vec y;
  if (quotient == GroupFormat::Quotient::divide) {
    usable &= magnitude(scale) <= __FLT_MAX__;
    y = difference / scale;
  } else {
    y = difference * scale;
  }
  return select(usable & (y == y), y, Vec{});
}

IntVec truncated(Vec x) { return __builtin_convertvector(x, IntVec); }

/// Rounded numbers plus `zero`; numbers of more than 1000, which any code ends below, are cut there.
template <Rounding R>
IntVec steps(Vec y, int zero) {
  constexpr float limit = 1000;
  y = select(y < limit, y, broadcast(limit));
  y = select(y > -limit, y, broadcast(-limit));
  if constexpr (R == Rounding::half_even) {
    const Vec shift = broadcast(0x1.8p23f);  // what is added to it is rounded to a whole number
    return truncated((y + shift) - shift) + zero;
  } else if constexpr (R == Rounding::half_away) {
    const IntVec whole = truncated(y);
    const Vec rest = magnitude(y - __builtin_convertvector(whole, Vec));
    return whole + select(rest >= 0.5f, select(y < 0, broadcast(-1), broadcast(1)), IntVec{}) + zero;
  } else {
    return truncated(y + (static_cast<float>(zero) + 0.5f));
  }
}

/// Calls code(y) for each vector of each row, and writes the results as bytes.
template <class F>
void encode_rows(const EncodeGroups<HostMatrix>& op, Context& context, F code) {
  const Index d = op.rows.cols, padded = round_up(d, W);
  const bool divide = op.format.quotient == GroupFormat::Quotient::divide;
  float* const x = scratch<float>(context, 0, 3 * padded);
  float* const scale = x + padded;
  float* const offset = scale + padded;
  std::int32_t* const codes = scratch<std::int32_t>(context, 1, padded);
  for (Index c = d; c < padded; ++c) x[c] = scale[c] = offset[c] = 0;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const float* row = op.rows.data + i * op.rows.stride;
    if (d < padded) {
      __builtin_memcpy(x, row, static_cast<std::size_t>(d) * sizeof(float));
      row = x;
    }
    if (op.format.axis == Axis::channels || i % op.format.group == 0) {
      spread(op.format, divide ? op.scale : op.inverse, i, d, scale);
      spread(op.format, op.offset, i, d, offset);
    }
    for (Index c = 0; c < d; c += W)
      store(codes + c, code(quotients(op.format.quotient, load(row + c) - load(offset + c), load(scale + c))));
    std::uint8_t* out = op.codes.data + i * op.codes.stride;
    for (Index c = 0; c < d; ++c) out[c] = static_cast<std::uint8_t>(codes[c]);
  }
}

template <Rounding R>
void encode_steps(const EncodeGroups<HostMatrix>& op, Context& context) {
  const IntVec highest = broadcast((1 << op.format.bits) - 1);
  encode_rows(op, context, [&](Vec y) {
    const IntVec code = steps<R>(y, op.format.zero);
    return select(code < 0, IntVec{}, select(code > highest, highest, code));
  });
}

/// Binary search: how many midpoints are at most y.
IntVec count_midpoints(const float* midpoints, int bits, Vec y) {
  IntVec count{};
  for (int step = 1 << (bits - 1); step > 0; step /= 2) count += (gather(midpoints, count + (step - 1)) <= y) & step;
  return count;
}

/// The level of each code.
void fill_levels(const DecodeGroups<HostMatrix>& op, float* levels) {
  const GroupFormat& format = op.format;
  for (int code = 0; code < 1 << format.bits; ++code)
    levels[code] = format.grid == Grid::codebook ? op.levels.data[code * op.levels.stride]
                   : format.grid == Grid::steps  ? static_cast<float>(code - format.zero)
                                                 : minifloat_value(format, code);
}

/// The norms of the levels of the groups of row i, each at all columns of its group.
void unit_norms(const DecodeGroups<HostMatrix>& op, const float* levels, Index i, double* sums, float* norms) {
  const Index d = op.codes.cols, group = op.format.group;
  const auto square = [&](Index row, Index c) {
    const double level = levels[op.codes.data[row * op.codes.stride + c]];
    return level * level;
  };
  if (op.format.axis == Axis::tokens) {
    for (Index c = 0; c < d; ++c) sums[c] = 0;
    for (Index row = i; row < i + min(group, op.codes.rows - i); ++row)
      for (Index c = 0; c < d; ++c) sums[c] += square(row, c);
    for (Index c = 0; c < d; ++c) norms[c] = static_cast<float>(__builtin_sqrt(sums[c]));
    return;
  }
  for (Index c = 0; c < d;) {
    double sum = 0;
    const Index end = c + min(group, d - c);
    for (Index k = c; k < end; ++k) sum += square(i, k);
    const auto norm = static_cast<float>(__builtin_sqrt(sum));
    for (; c < end; ++c) norms[c] = norm;
  }
}

}  // namespace

template <>
void run(const EncodeGroups<HostMatrix>& op, Context& context) {
  const GroupFormat& format = op.format;
  if (format.grid == Grid::minifloat)
    encode_rows(op, context, [&](Vec y) { return minifloat_codes(format, y); });
  else if (format.grid == Grid::codebook)
    encode_rows(op, context, [&](Vec y) { return count_midpoints(op.midpoints.data, format.bits, y); });
  else if (format.rounding == Rounding::half_even)
    encode_steps<Rounding::half_even>(op, context);
  else if (format.rounding == Rounding::half_away)
    encode_steps<Rounding::half_away>(op, context);
  else
    encode_steps<Rounding::half_up>(op, context);
}

template <>
void run(const DecodeGroups<HostMatrix>& op, Context& context) {
  const Index d = op.codes.cols, padded = round_up(d, W);
  float* const scale = scratch<float>(context, 0, 4 * padded);
  float* const offset = scale + padded;
  float* const norms = offset + padded;
  float* const decoded = norms + padded;
  std::int32_t* const codes = scratch<std::int32_t>(context, 1, padded);
  double* const sums = scratch<double>(context, 2, d);
  for (Index c = 0; c < padded; ++c) scale[c] = offset[c] = norms[c] = 0, codes[c] = 0;
  float levels[256];
  fill_levels(op, levels);
  for (Index i = 0; i < op.codes.rows; ++i) {
    if (op.format.axis == Axis::channels || i % op.format.group == 0) {
      spread(op.format, op.scale, i, d, scale);
      spread(op.format, op.offset, i, d, offset);
      if (op.format.unit_norm) unit_norms(op, levels, i, sums, norms);
    }
    const std::uint8_t* in = op.codes.data + i * op.codes.stride;
    for (Index c = 0; c < d; ++c) codes[c] = in[c];
    float* const row = op.out.data + i * op.out.stride;
    float* const out = d < padded ? decoded : row;
    for (Index c = 0; c < d; c += W) {
      Vec level = gather(levels, load(codes + c));
      if (op.format.unit_norm) {
        const Vec norm = load(norms + c);
        level = select(norm != 0, level / norm, level);
      }
      store(out + c, level * load(scale + c) + load(offset + c));
    }
    if (out != row) __builtin_memcpy(row, out, static_cast<std::size_t>(d) * sizeof(float));
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
