// SPDX-License-Identifier: Apache-2.0
// Points as bytes that are kept from one best match to the next: BestMatch::memory.
#pragma once

#include "byte_search.hpp"

#if KVBENCH_WIDTH == 16

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Views of the memory. A row of bytes is q + 128, filled up with 128 to byte_pitch(d).
struct KeptPoints {
  std::int32_t* usable;         // 0: no filter for these points
  float* centre;                // [d]
  float *scale, *size, *error;  // [n]
  std::uint8_t* bytes;          // [n][byte_pitch(d)]
};

inline KeptPoints kept_points(std::uint8_t* memory, Index n, Index d) {
  auto* numbers = reinterpret_cast<float*>(memory + 64);
  float* scale = numbers + d;
  return {.usable = reinterpret_cast<std::int32_t*>(memory),
          .centre = numbers,
          .scale = scale,
          .size = scale + n,
          .error = scale + 2 * n,
          .bytes = reinterpret_cast<std::uint8_t*>(scale + 3 * n)};
}

/// Fills the memory; *usable says whether every point can be used.
inline void keep_points(const KeptPoints& kept, const float* data, Index stride, Index n, Index d) {
  mean_of(data, stride, n, d, kept.centre);
  bool usable = true;
  for (Index i = 0; i < n; ++i) {
    const ByteRow own = to_bytes(data + i * stride, kept.centre, d, 128, kept.bytes + i * byte_pitch(d));
    kept.scale[i] = own.scale;
    kept.size[i] = own.size;
    kept.error[i] = own.error;
    usable = usable && own.size < kByteLimit;
  }
  *kept.usable = usable ? 1 : 0;
}

/// set_points for points that are kept: point(lane) is the number of each.
template <class Point>
inline bool set_kept_points(const ByteCandidates& set, const KeptPoints& kept, Point point, std::uint8_t* bytes,
                            ByteStrip& strip) {
  bool usable = true;
  const Index pitch = byte_pitch(set.d);
  const float* quads[kStrip];  // pack_strip moves four bytes as if they were a float
  for (Index lane = 0; lane < kStrip; ++lane) {
    const Index i = point(lane);
    usable = set_lane(set, lane, kept.scale[i], kept.size[i], kept.error[i], strip) && usable;
    quads[lane] = reinterpret_cast<const float*>(kept.bytes + i * pitch);
  }
  pack_strip(quads, pitch / 4, reinterpret_cast<float*>(bytes));
  strip.bytes = bytes;
  for (int v = 0; v < 2; ++v) strip.highest[v] = broadcast(-kInfinity);
  return usable;
}

/// Raises strip.highest to the lower bound of one candidate of each point: point(lane) and candidate(lane) are their numbers.
template <class Point, class Candidate>
[[gnu::target("avx512vnni")]] inline void raise_to_own(const ByteCandidates& set, const KeptPoints& kept, Point point,
                                                       Candidate candidate, ByteStrip& strip) {
  const Index pitch = byte_pitch(set.d);
  alignas(64) std::int32_t products[kStrip];
  alignas(64) float scale[kStrip], shift[kStrip], size[kStrip], error[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane) {
    const Index c = candidate(lane);
    const std::uint8_t* y = kept.bytes + point(lane) * pitch;
    const std::int8_t* z = set.bytes + c * pitch;
    __m512i acc = _mm512_setzero_si512();
    for (Index k = 0; k < pitch; k += 64) {
      const __mmask64 mask = pitch - k >= 64 ? ~__mmask64{0} : (__mmask64{1} << (pitch - k)) - 1;
      acc = _mm512_dpbusd_epi32(acc, _mm512_maskz_loadu_epi8(mask, y + k), _mm512_maskz_loadu_epi8(mask, z + k));
    }
    products[lane] = sum(IntVec(acc)) + set.start[c];
    scale[lane] = set.scale[c];
    shift[lane] = set.shift[c];
    size[lane] = set.size[c];
    error[lane] = set.error[c];
  }
  for (int v = 0; v < 2; ++v) {  // as in byte_tile
    const Vec product = __builtin_convertvector(load(products + v * W), Vec) * load(scale + v * W);
    const Vec middle = fma(product, strip.scale[v], load(shift + v * W));
    const Vec width = fma(strip.error[v], load(size + v * W), strip.reach[v] * load(error + v * W));
    strip.highest[v] = max(strip.highest[v], middle - width);
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA

#endif
