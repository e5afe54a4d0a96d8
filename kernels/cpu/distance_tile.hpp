// SPDX-License-Identifier: Apache-2.0
// Every operation on squared distances computes them as one chain over d, with neighbouring centres or points in the
// lanes, so the distance of two rows has the same bits in all of them.
#pragma once

#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// acc[r] = squared distances of row r of a packed tile to the kStrip rows of a packed strip.
template <int Rows>
inline void distance_tile(const float* tile, const float* strip, Index d, Vec (&acc)[Rows][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) acc[r][0] = acc[r][1] = Vec{};
  for (Index c = 0; c < d; ++c) {
    const Vec s0 = load(strip + c * kStrip);
    const Vec s1 = load(strip + c * kStrip + W);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec x = broadcast(tile[c * kTileRows + r]);
      const Vec d0 = s0 - x;
      const Vec d1 = s1 - x;
      acc[r][0] = fma(d0, d0, acc[r][0]);
      acc[r][1] = fma(d1, d1, acc[r][1]);
    }
  }
}

/// acc[r] = squared distances of rows that are read in place to W neighbouring rows of a packed strip.
template <int Rows>
inline void distance_lanes(const float* const* rows, const float* lanes, Index d, Vec (&acc)[Rows]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) acc[r] = Vec{};
  for (Index c = 0; c < d; ++c) {
    const Vec s = load(lanes + c * kStrip);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec difference = s - broadcast(rows[r][c]);
      acc[r] = fma(difference, difference, acc[r]);
    }
  }
}

/// acc[s] = squared distances of one row to those of neighbouring strips: more than one hide the latency of the sums.
template <int Strips>
inline void distance_strips(const float* row, const float* strips, Index d, Vec (&acc)[Strips][2]) {
#pragma GCC unroll 4
  for (int s = 0; s < Strips; ++s) acc[s][0] = acc[s][1] = Vec{};
  for (Index c = 0; c < d; ++c) {
    const Vec x = broadcast(row[c]);
#pragma GCC unroll 4
    for (int s = 0; s < Strips; ++s)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const Vec difference = load(strips + s * kStrip * d + c * kStrip + v * W) - x;
        acc[s][v] = fma(difference, difference, acc[s][v]);
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
