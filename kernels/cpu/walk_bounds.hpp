// SPDX-License-Identifier: Apache-2.0
// Which signs of a balance walk no sum can change. A row is +1 where u < 1/2 - step s: s does not matter where
// step A < |1/2 - u| for some A >= |s|. Here A = sum over earlier rows j of a bound of |K(i, j)|, without signs: it waits for
// none.
//
// With rows as bytes, k = s q + e (byte_rows.hpp),
//     |<k_i, k_j> - s_i s_j <q_i, q_j>| <= (|k_i| + |e_i|) |e_j| + |e_i| |k_j| = E,
// <q_i, q_j> is exact, |<v_i, v_j>| + |o| <= g_i g_j with g = |v| + sqrt |o|, and 2^(n + f) <= 2^n (1 + f) for 0 <= f <= 1,
// whose right side is the float with the bits 2^23 (127 + n + f). So
//     |K(i, j)| <= g_i g_j float(2^23 (127 + (scale s_i s_j <q_i, q_j> + |scale| E - shift) / ln 2)).
// A also bounds what fp32 makes of s. With u = 2^-24 and L = |scale| (the largest |k| + |e|)^2, roundings move an exponent by
//     the chain of d FMAs, and scale x - shift                      1.01 d u L + 2 u (L + |shift|)
//     s_i scale / ln 2, int to float, s_j; E; their sum             30 u (L + |shift|), and less than 2^-14 for the 127
// of which (d + 32) 2^-23 (L + |shift|) is added to the exponents, and the rest is a factor 1.0002; sums of n terms and
// products of dv are off by a factor within 1 + (n + dv + 64) 2^-22. Exponents are kept in the range of normal numbers, from
// below and from above: a term that underflows is bounded too, and where a true one could overflow the sum does, which leaves
// the sign open.
#pragma once

#include "block_walk.hpp"
#include "byte_products.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Rows of one block: their keys as bytes, the numbers that enter the bounds, and one strip in hand.
struct WalkBounds {
  const float *keys, *values;  // null values: g = 1
  Index key_stride, value_stride, rows, d, dv;
  float scale, shift, offset;  // `offset`: that of the values
  Index set = 0;               // rows [0, set) are there, the last strip is that of `bytes`
  bool usable = true;
  float longest = 0;  // |k| + |e|
  float* zeros;       // the centre of the bytes
  std::int8_t* keys8;
  std::uint8_t* strip;
  float *scales, *sizes, *errors, *factors;  // s, |k|, |e|, g
  std::int32_t* starts;                      // -128 times the sum of q
};

/// Slots [9, 13). The fields up to `offset` are the caller's.
inline void start_bounds(WalkBounds& bounds, Context& context) {
  const Index padded = round_up(bounds.rows, kStrip), pitch = byte_pitch(bounds.d);
  bounds.zeros = scratch<float>(context, 9, bounds.d);
  for (Index c = 0; c < bounds.d; ++c) bounds.zeros[c] = 0;
  bounds.keys8 = scratch<std::int8_t>(context, 10, padded * pitch);
  bounds.strip = scratch<std::uint8_t>(context, 11, kStrip * pitch);
  auto* numbers = scratch<float>(context, 12, 5 * padded);
  bounds.scales = numbers;
  bounds.sizes = numbers + padded;
  bounds.errors = numbers + 2 * padded;
  bounds.factors = numbers + 3 * padded;
  bounds.starts = reinterpret_cast<std::int32_t*>(numbers + 4 * padded);
  const float largest = __builtin_fabsf(bounds.scale) + __builtin_fabsf(bounds.shift) + __builtin_fabsf(bounds.offset);
  bounds.usable = largest < kByteLimit && bounds.rows < kByteColumns && bounds.dv < kByteColumns;
}

/// Makes bytes of the next kStrip rows; those beyond the last repeat it.
inline void set_strip(WalkBounds& bounds) {
  const Index first = bounds.set, pitch = byte_pitch(bounds.d);
  const float root = __builtin_sqrtf(__builtin_fabsf(bounds.offset)) * (1 + 0x1p-20f);
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) rows[lane] = bounds.keys + min(first + lane, bounds.rows - 1) * bounds.key_stride;
  auto* own = reinterpret_cast<std::uint8_t*>(bounds.keys8) + first * pitch;
  pack_bytes(rows, bounds.zeros, bounds.d, own, bounds.strip, [&](Index lane, const ByteRow& row) {
    const Index i = first + lane;
    const float* values = bounds.values == nullptr ? nullptr : bounds.values + min(i, bounds.rows - 1) * bounds.value_stride;
    bounds.scales[i] = row.scale;
    bounds.sizes[i] = row.size;
    bounds.errors[i] = row.error;
    bounds.factors[i] = values == nullptr ? 1 : norm_bound(rough_norm2(values, bounds.dv), bounds.dv) + root;
    bounds.starts[i] = -128 * row.sum;
    const float length = row.size + row.error;
    bounds.longest = length > bounds.longest ? length : bounds.longest;
    bounds.usable = bounds.usable && length < kByteLimit && bounds.factors[i] < kByteLimit;
  });
  const __m512i sign = _mm512_set1_epi8(-128);
  for (Index at = 0; at < kStrip * pitch; at += 64)  // q + 128 to q
    _mm512_storeu_si512(own + at, _mm512_xor_si512(_mm512_loadu_si512(own + at), sign));
  bounds.set += kStrip;
}

/// out[lane] = A of the rows of the last strip that was set.
[[gnu::target("avx512vnni"), gnu::noinline]] inline void bound_sums(const WalkBounds& bounds, float* out) {
  constexpr float kUnit = 0x1.715476p23f;                    // an exponent of 1 in the bits of a float
  constexpr float kLowest = 0x1p23f, kHighest = 0x1.fcp30f;  // 2^-126, 2^127
  const Index first = bounds.set - kStrip, pitch = byte_pitch(bounds.d);
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
  for (Index j = 0; j < bounds.set; j += kByteTile) {
    __m512i products[kByteTile][2];
    byte_dots(bounds.keys8 + j * pitch, pitch, bounds.starts + j, bounds.strip, bounds.d, products);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
#pragma GCC unroll 8
      for (int r = 0; r < kByteTile; ++r) {
        const Vec product = __builtin_convertvector(IntVec(products[r][v]), Vec) * broadcast(bounds.scales[j + r]);
        Vec bits = fma(product, scale[v], base);
        bits = fma(error[v], broadcast(bounds.sizes[j + r]), bits);
        bits = fma(reach[v], broadcast(bounds.errors[j + r]), bits);
        bits = max(bits, broadcast(kLowest));
        bits = bits < broadcast(kHighest) ? bits : broadcast(kHighest);
        IntVec term = IntVec(_mm512_maskz_cvtps_epi32(0xffff, __m512(bits)));
        if (j >= first) term &= lane_numbers(v * W) > broadcast(static_cast<std::int32_t>(j + r - first));
        sums[v] = fma(Vec(term), broadcast(bounds.factors[j + r]), sums[v]);
      }
  }
  const Vec loss = broadcast(1.0002f + static_cast<float>(bounds.set + bounds.dv + 64) * 0x1p-22f);
  for (int v = 0; v < 2; ++v) store(out + v * W, sums[v] * load(bounds.factors + first + v * W) * loss);
}

/// Tries bounds less often the more often they were of no use.
struct Trials {
  bool wanted, always;
  Index pause = 0, length = 1;  // groups without a trial
};

inline WalkBounds bounds_of(const Walk& op, const BlockWalk& walk, Context& context) {
  WalkBounds bounds = {.keys = walk.keys.data,
                       .values = walk.values.data,
                       .key_stride = walk.keys.stride,
                       .value_stride = walk.values.stride,
                       .rows = walk.rows,
                       .d = walk.keys.d,
                       .dv = walk.values.d,
                       .scale = op.scale,
                       .shift = walk.shift,
                       .offset = op.value_offset};
  start_bounds(bounds, context);
  return bounds;
}

/// Whether the bounds of a strip, `sums`, leave one of its signs open; the margin of 2^-50 is that of 1/2 - step s in fp64.
inline bool leave_open(const Walk& op, const BlockWalk& walk, Index first, Index count, const float* sums) {
  const Index width = op.pairs ? 2 : 1;
  for (Index row = 0; row < count; row += width) {
    const bool two = width == 2 && row + 1 < count;
    const double sum = static_cast<double>(sums[row]) + (two ? static_cast<double>(sums[row + 1]) : 0);
    const double margin = absolute(0.5 - op.uniforms.data[(walk.begin + first + row) * op.uniforms.stride]);
    if (!(absolute(walk.step) * sum * (1 + 0x1p-40) + 0x1p-50 < margin)) return true;
  }
  return false;
}

/// open[s]: strip s of the group needs its sums.
inline void find_open(const Walk& op, const BlockWalk& walk, Index group, Index count, Trials& trials, WalkBounds& bounds,
                      bool* open) {
  if (!trials.wanted || !bounds.usable || (trials.pause > 0 && trials.pause-- > 0)) return;
  while (bounds.set < group) set_strip(bounds);
  Index spared = 0;
  for (Index strip = 0; strip < count; strip += kStrip) {
    alignas(64) float sums[kStrip];
    set_strip(bounds);
    if (!bounds.usable) return;
    bound_sums(bounds, sums);
    open[strip / kStrip] = leave_open(op, walk, group + strip, min(kStrip, count - strip), sums);
    spared += open[strip / kStrip] ? 0 : kStrip;
  }
  constexpr Index kLongest = 64;
  trials.length = 2 * spared >= count ? 1 : min(2 * trials.length, kLongest);
  if (2 * spared < count && !trials.always) trials.pause = trials.length;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
