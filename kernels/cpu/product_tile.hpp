// SPDX-License-Identifier: Apache-2.0
// Inner products of a few rows, read in place, with the kStrip rows of a packed strip. Each product is one chain of
// FMAs over d, so the product of two rows has the same bits at every place of a tile.
#pragma once

#include "pack.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Floats of an operand that is read repeatedly: 256 KiB, half of the smallest second-level cache of current
/// processors.
constexpr Index kCached = 1 << 16;

/// Rows of d floats that fit there, a multiple of `multiple` and at least that.
inline Index cached_rows(Index d, Index multiple) { return max(kCached / max(d, 1) / multiple, 1) * multiple; }

/// acc[r] = <row r, each row of the strip>; rows are `stride` floats apart. First = 1: the second vector alone.
template <int Rows, int First = 0>
[[gnu::always_inline]] inline void product_tile(const float* rows, Index stride, const float* strip, Index d,
                                                Vec (&acc)[Rows][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) acc[r][0] = acc[r][1] = Vec{};
#pragma GCC unroll 4
  for (Index c = 0; c < d; ++c) {
    const Vec s0 = load(strip + c * kStrip);
    const Vec s1 = load(strip + c * kStrip + W);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec x = broadcast(rows[r * stride + c]);
      if constexpr (First == 0) acc[r][0] = fma(x, s0, acc[r][0]);
      acc[r][1] = fma(x, s1, acc[r][1]);
    }
  }
}

/// out[i] = <a[i], b[i]> for kStrip pairs, with the bits of product_tile. `strips`: 2 * kStrip * d floats.
inline void pair_products(const float* const* a, const float* const* b, Index d, float* strips, float* out) {
  pack_strip(a, d, strips);
  pack_strip(b, d, strips + kStrip * d);
  Vec acc[2] = {};
  for (Index c = 0; c < d; ++c)
    for (int v = 0; v < 2; ++v)
      acc[v] = fma(load(strips + c * kStrip + v * W), load(strips + (d + c) * kStrip + v * W), acc[v]);
  store(out, acc[0]);
  store(out + W, acc[1]);
}

/// Copies the first `count` of the kStrip results of a row.
inline void write_strip(const Vec (&results)[2], Index count, float* out) {
  if (count >= kStrip) {
    store(out, results[0]);
    store(out + W, results[1]);
    return;
  }
  alignas(64) float lane[kStrip];
  store(lane, results[0]);
  store(lane + W, results[1]);
  for (Index c = 0; c < count; ++c) out[c] = lane[c];
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
