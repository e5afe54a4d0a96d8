// SPDX-License-Identifier: Apache-2.0
// Every operation on squared distances forms them as one chain over d, lanes being neighbouring centres or points, so the same
// pair has the same bits in each of them.
#pragma once

#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// acc[r] = squared distances of row r of a packed tile to the kStrip rows of a packed strip; `Step` floats of the tile lie
/// between columns.
template <int Rows, int Step = kTileRows>
inline void distance_tile(const float* tile, const float* strip, Index d, Vec (&acc)[Rows][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) acc[r][0] = acc[r][1] = Vec{};
  for (Index c = 0; c < d; ++c) {
    const Vec s0 = load(strip + c * kStrip);
    const Vec s1 = load(strip + c * kStrip + W);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec x = broadcast(tile[c * Step + r]);
      const Vec d0 = s0 - x;
      const Vec d1 = s1 - x;
      acc[r][0] = fma(d0, d0, acc[r][0]);
      acc[r][1] = fma(d1, d1, acc[r][1]);
    }
  }
}

/// out[i] = |a[i] - b[i]|^2 for kStrip pairs, with the bits of distance_tile. `strips`: 2 * kStrip * d floats.
inline void pair_distances(const float* const* a, const float* const* b, Index d, float* strips, float* out) {
  pack_strip(a, d, strips);
  pack_strip(b, d, strips + kStrip * d);
  Vec acc[2] = {};
  for (Index c = 0; c < d; ++c)
    for (int v = 0; v < 2; ++v) {
      const Vec difference = load(strips + c * kStrip + v * W) - load(strips + (d + c) * kStrip + v * W);
      acc[v] = fma(difference, difference, acc[v]);
    }
  store(out, acc[0]);
  store(out + W, acc[1]);
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
