// SPDX-License-Identifier: Apache-2.0
// Signs of a balance walk that do not depend on its sums. A row is +1 where u < 1/2 - step s, so s does not matter
// where step A < |1/2 - u| for some A >= |s|. Here A = sum over earlier rows j of a bound of |K(i, j)|; it does not
// depend on the signs of these rows.
//
// With rows as 8-bit integers, k = s q + e (int8_rows.hpp),
//     |<k_i, k_j> - s_i s_j <q_i, q_j>| <= (|k_i| + |e_i|) |e_j| + |e_i| |k_j| = E,
// <q_i, q_j> is exact, |<v_i, v_j>| + |o| <= g_i g_j with g = |v| + sqrt |o|, and 2^(n + f) <= 2^n (1 + f) for 0 <= f
// <= 1, whose right side is the float with the bits 2^23 (127 + n + f). So
//     |K(i, j)| <= g_i g_j float(2^23 (127 + (scale s_i s_j <q_i, q_j> + |scale| E - shift) / ln 2)).
// A also bounds what fp32 makes of s. With u = 2^-24 and L = |scale| (the largest |k| + |e|)^2, roundings move an
// exponent by
//     the chain of d FMAs, and scale x - shift                      1.01 d u L + 2 u (L + |shift|)
//     s_i scale / ln 2, int to float, s_j; E; their sum             30 u (L + |shift|), and less than 2^-14 for the 127
// of which (d + 32) 2^-23 (L + |shift|) is added to the exponents, and the rest is a factor 1.0002; sums of n terms and
// products of dv are off by a factor within 1 + (n + dv + 64) 2^-22. Exponents are limited to the range of normal
// numbers on both sides: a term that underflows is bounded too, and where a true term could overflow, A does, so that
// the sign is not settled.
#pragma once

#include "../block_walk.hpp"
#include "int8_bounds.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// The rows of one block: their keys as 8-bit integers, the numbers that enter the bounds, and the strip that was set
/// last.
struct WalkBounds {
  const float *keys, *values;  // null values: g = 1
  Index key_stride, value_stride, rows, d, dv;
  float scale, shift, offset;  // `offset`: that of the values
  Index set = 0;               // rows [0, set) have been set
  bool usable = true;
  float longest = 0;  // the largest |k| + |e|
  float* zeros;       // the centre of the rows
  std::int8_t* keys8;
  std::uint8_t* strip;                       // the last kStrip rows that were set, packed
  float *scales, *sizes, *errors, *factors;  // s, |k|, |e|, g
  std::int32_t* starts;                      // [int8_starts(d)] of each row
};

/// Slots [9, 13).
inline WalkBounds bounds_of(const Walk& op, const BlockWalk& walk, Context& context) {
  const Index d = walk.keys.d, padded = round_up(walk.rows, kStrip), pitch = int8_pitch(d);
  auto* numbers = scratch<float>(context, 12, (4 + int8_starts(d)) * padded);
  WalkBounds bounds = {.keys = walk.keys.data,
                       .values = walk.values.data,
                       .key_stride = walk.keys.stride,
                       .value_stride = walk.values.stride,
                       .rows = walk.rows,
                       .d = d,
                       .dv = walk.values.d,
                       .scale = op.scale,
                       .shift = walk.shift,
                       .offset = op.value_offset,
                       .zeros = scratch<float>(context, 9, d),
                       .keys8 = scratch<std::int8_t>(context, 10, padded * pitch),
                       .strip = scratch<std::uint8_t>(context, 11, kStrip * pitch),
                       .scales = numbers,
                       .sizes = numbers + padded,
                       .errors = numbers + 2 * padded,
                       .factors = numbers + 3 * padded,
                       .starts = reinterpret_cast<std::int32_t*>(numbers + 4 * padded)};
  for (Index c = 0; c < d; ++c) bounds.zeros[c] = 0;
  const float largest = __builtin_fabsf(bounds.scale) + __builtin_fabsf(bounds.shift) + __builtin_fabsf(bounds.offset);
  bounds.usable = largest < kInt8Limit && bounds.rows < kInt8Columns && bounds.dv < kInt8Columns;
  return bounds;
}

/// Converts the next kStrip rows; the last row of the block stands for those beyond it.
inline void set_strip(WalkBounds& bounds) {
  const Index first = bounds.set, pitch = int8_pitch(bounds.d);
  const float root = __builtin_sqrtf(__builtin_fabsf(bounds.offset)) * (1 + 0x1p-20f);
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane)
    rows[lane] = bounds.keys + min(first + lane, bounds.rows - 1) * bounds.key_stride;
  auto* own = reinterpret_cast<std::uint8_t*>(bounds.keys8) + first * pitch;
  const auto keep = [&](Index lane, const Int8Row& row) {
    const Index i = first + lane;
    const float* values =
        bounds.values == nullptr ? nullptr : bounds.values + min(i, bounds.rows - 1) * bounds.value_stride;
    bounds.scales[i] = row.scale;
    bounds.sizes[i] = row.size;
    bounds.errors[i] = row.error;
    bounds.factors[i] = values == nullptr ? 1 : norm_bound(rough_norm2(values, bounds.dv), bounds.dv) + root;
    const float length = row.size + row.error;
    bounds.longest = length > bounds.longest ? length : bounds.longest;
    bounds.usable = bounds.usable && length < kInt8Limit && bounds.factors[i] < kInt8Limit;
  };
  pack_as_int8(rows, bounds.zeros, bounds.d, own, bounds.strip, keep, bounds.starts + first * int8_starts(bounds.d));
  for (Index at = 0; at < kStrip * pitch; ++at) own[at] -= kPointOffset;  // integers of candidates
  bounds.set += kStrip;
}

/// out[lane] = A of the rows of the strip that was set last.
[[KVBENCH_INT8, gnu::noinline]] inline void bound_sums(const WalkBounds& bounds, float* out) {
  constexpr float kUnit = 0x1.715476p23f;                    // an exponent of 1 in the bits of a float
  constexpr float kLowest = 0x1p23f, kHighest = 0x1.fcp30f;  // 2^-126, 2^127
  const Index first = bounds.set - kStrip, pitch = int8_pitch(bounds.d);
  const float size = __builtin_fabsf(bounds.scale), magnitude = size * bounds.longest * bounds.longest;
  const float slack = (magnitude + __builtin_fabsf(bounds.shift)) * static_cast<float>(bounds.d + 32) * 0x1p-23f;
  const Vec base = broadcast(127 * 0x1p23f + (slack - bounds.shift) * kUnit);
  Vec scale[2], error[2], reach[2], sums[2] = {};
  for (int v = 0; v < 2; ++v) {
    const Index at = first + v * W;
    scale[v] = broadcast(bounds.scale * kUnit) * load(bounds.scales + at);
    error[v] = broadcast(size * kUnit) * load(bounds.errors + at);
    reach[v] = broadcast(size * kUnit) * load(bounds.sizes + at) + error[v];
  }
  for (Index j = 0; j < bounds.set; j += kBoundRows) {
    IntVec products[kBoundRows][2];
    int8_products(bounds.keys8 + j * pitch, pitch, bounds.starts + j * int8_starts(bounds.d), bounds.strip, bounds.d,
                  products);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
#pragma GCC unroll 8
      for (int r = 0; r < kBoundRows; ++r) {
        const Vec product = __builtin_convertvector(products[r][v], Vec) * broadcast(bounds.scales[j + r]);
        Vec bits = fma(product, scale[v], base);
        bits = fma(error[v], broadcast(bounds.sizes[j + r]), bits);
        bits = fma(reach[v], broadcast(bounds.errors[j + r]), bits);
        bits = max(bits, broadcast(kLowest));
        bits = bits < broadcast(kHighest) ? bits : broadcast(kHighest);
        IntVec term = rounded(bits);
        if (j >= first) term &= lane_numbers(v * W) > broadcast(static_cast<std::int32_t>(j + r - first));
        sums[v] = fma(Vec(term), broadcast(bounds.factors[j + r]), sums[v]);
      }
  }
  const Vec loss = broadcast(1.0002f + static_cast<float>(bounds.set + bounds.dv + 64) * 0x1p-22f);
  for (int v = 0; v < 2; ++v) store(out + v * W, sums[v] * load(bounds.factors + first + v * W) * loss);
}

/// For the interface see NoWalkPrefilter.
class Int8WalkPrefilter {
 public:
  Int8WalkPrefilter(const Walk& op, Context& context) : op_(op), context_(context) {
    // To convert a row costs about as much as the row gains in blocks of 64.
    const bool pays = op.starts.rows > 1 && op.keys.rows >= (op.starts.rows - 1) * 4 * kStrip;
    wanted_ = !op.greedy && wants_prefilter(context, pays, op.keys.cols);
  }

  void start(const BlockWalk& walk) {
    if (!wanted_) return;
    walk_ = &walk;
    bounds_ = bounds_of(op_, walk, context_);
  }

  void find_settled(Index group, Index count, bool* needs_sums) {
    if (!wanted_ || !bounds_.usable || (pause_ > 0 && pause_-- > 0)) return;
    while (bounds_.set < group) set_strip(bounds_);
    Index settled = 0;
    for (Index strip = 0; strip < count; strip += kStrip) {
      alignas(64) float sums[kStrip];
      set_strip(bounds_);
      if (!bounds_.usable) return;
      bound_sums(bounds_, sums);
      bool& needed = needs_sums[strip / kStrip];
      needed = leaves_sign_open(group + strip, min(kStrip, count - strip), sums);
      settled += needed ? 0 : kStrip;
    }
    adapt(2 * settled >= count);
  }

 private:
  /// Whether the bounds `sums` of a strip leave one of its signs open; the margin of 2^-50 covers the rounding of
  /// 1/2 - step s in fp64.
  bool leaves_sign_open(Index first, Index count, const float* sums) const {
    const Index width = op_.pairs ? 2 : 1;
    for (Index row = 0; row < count; row += width) {
      const bool two = width == 2 && row + 1 < count;
      const double sum = static_cast<double>(sums[row]) + (two ? static_cast<double>(sums[row + 1]) : 0);
      const double margin = absolute(0.5 - op_.uniforms.data[(walk_->begin + first + row) * op_.uniforms.stride]);
      if (!(absolute(walk_->step) * sum * (1 + 0x1p-40) + 0x1p-50 < margin)) return true;
    }
    return false;
  }

  /// Bounds that settle less than half of a group are tried again after a pause, which doubles up to 64 groups.
  void adapt(bool useful) {
    constexpr Index longest = 64;
    next_pause_ = useful ? 1 : min(2 * next_pause_, longest);
    if (!useful && context_.prefilter != Prefilter::always) pause_ = next_pause_;
  }

  const Walk& op_;
  Context& context_;
  const BlockWalk* walk_ = nullptr;
  WalkBounds bounds_ = {};
  bool wanted_ = false;
  Index pause_ = 0, next_pause_ = 1;  // groups
};

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
