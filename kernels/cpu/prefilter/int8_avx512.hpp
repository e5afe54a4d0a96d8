// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers by AVX512-VNNI: four neighbouring columns of W rows by one instruction, summed in 32 bits.
#pragma once

#include "../pack.hpp"

#define KVBENCH_INT8 gnu::target("avx512vnni")

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Rows of a tile.
constexpr int kBoundRows = 8;
/// Points are bytes q + kPointOffset with |q| <= kPointLimit, candidates signed bytes |q| <= kCandidateLimit.
constexpr int kPointOffset = 128, kPointLimit = 127, kCandidateLimit = 127;
/// Sums of this many products fit 32 bits.
constexpr Index kInt8Columns = 1 << 16;

/// Whether bounds exclude nearly as many candidates as scores do.
constexpr bool kTightBounds = true;

/// Numbers that cancel the offset of the points, of one candidate of d columns.
inline Index int8_starts(Index /*d*/) { return 1; }

inline IntVec rounded(Vec x) { return IntVec(_mm512_maskz_cvtps_epi32(0xffff, __m512(x))); }

/// Writes the W bytes q + offset.
inline void store_bytes(IntVec q, int offset, std::uint8_t* out) {
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, __m512i(q));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_add_epi8(bytes, _mm_set1_epi8(static_cast<char>(offset))));
}

/// The largest norm that a part of a row may have as integers: nothing is to be observed, because sums have 32 bits.
struct PartNorms {
  void add(Vec, Index) {}
  float least_scale(bool /*point*/, Index) const { return 0; }
};

/// The starts of a candidate from its integers.
struct Int8Starts {
  IntVec sums = {};
  void add(IntVec q, Index, std::int32_t*) { sums += q; }
  void finish(Index, std::int32_t* out) const { *out = -kPointOffset * sum(sums); }
};

/// acc[r] = <q of row r, q of each lane of the strip>, exact: rows of signed bytes `pitch` apart, a strip that
/// pack_int8() made of points, the starts of the rows.
[[KVBENCH_INT8, gnu::always_inline]] inline void int8_products(const std::int8_t* rows, Index pitch,
                                                               const std::int32_t* starts, const std::uint8_t* strip,
                                                               Index d, IntVec (&acc)[kBoundRows][2]) {
  const Index quads = (d + 3) / 4;
#pragma GCC unroll 8
  for (int r = 0; r < kBoundRows; ++r) acc[r][0] = acc[r][1] = broadcast(starts[r]);
#pragma GCC unroll 2
  for (Index c = 0; c < quads; ++c) {
    const __m512i s0 = _mm512_load_si512(strip + c * 4 * kStrip);
    const __m512i s1 = _mm512_load_si512(strip + c * 4 * kStrip + 64);
#pragma GCC unroll 8
    for (int r = 0; r < kBoundRows; ++r) {
      const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const UnalignedInt*>(rows + r * pitch + 4 * c));
      acc[r][0] = IntVec(_mm512_dpbusd_epi32(__m512i(acc[r][0]), s0, x));
      acc[r][1] = IntVec(_mm512_dpbusd_epi32(__m512i(acc[r][1]), s1, x));
    }
  }
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
