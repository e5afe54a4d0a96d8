// SPDX-License-Identifier: Apache-2.0
// Operand layouts of the tile kernels. "Strips" hold kStrip rows side by side: element (row, c) lies at [row /
// kStrip][c][row % kStrip], so that a vector holds one column of neighbouring rows. "Tiles" are the same with
// kTileRows.
#pragma once

#include "simd.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

#if KVBENCH_WIDTH > 4
/// out[c * stride + r] = in[r][c] for 8 x 8 floats.
inline void transpose_8x8(const float* const* in, Index column, float* out, Index stride) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(in[i] + column);
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + i * stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(out + (i + 4) * stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#endif

/// Packs kStrip rows of d columns; a null row becomes zeros.
inline void pack_strip(const float* const* rows, Index d, float* out) {
  for (int first = 0; first < kStrip; first += 8) {
    const float* const* in = rows + first;
    const int height = kStrip < 8 ? kStrip : 8;
    bool complete = true;
    for (int r = 0; r < height; ++r) complete = complete && in[r] != nullptr;
    Index c = 0;
#if KVBENCH_WIDTH > 4
    if (complete)
      for (; c + 8 <= d; c += 8) transpose_8x8(in, c, out + c * kStrip + first, kStrip);
#endif
    for (; c < d; ++c)
      for (int r = 0; r < height; ++r) out[c * kStrip + first + r] = in[r] == nullptr ? 0 : in[r][c];
  }
}

/// Rows [begin, begin + count) of a matrix as strips; the last strip is padded with zeros.
inline void pack_strips(const float* data, Index stride, Index count, Index d, float* out) {
  for (Index first = 0; first < count; first += kStrip) {
    const float* rows[kStrip];
    for (Index r = 0; r < kStrip; ++r) rows[r] = first + r < count ? data + (first + r) * stride : nullptr;
    pack_strip(rows, d, out + first * d);
  }
}

/// `count` rows, `step` rows apart and each multiplied by `scale`, as tiles; the last tile is padded with zeros.
inline void pack_tiles(const float* data, Index stride, Index step, Index count, Index d, float scale, float* out) {
  for (Index first = 0; first < count; first += kTileRows)
    for (Index r = 0; r < kTileRows; ++r) {
      const float* row = data + (first + r) * step * stride;
      for (Index c = 0; c < d; ++c) out[first * d + c * kTileRows + r] = first + r < count ? scale * row[c] : 0;
    }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
