// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers without VNNI: vpmaddubsw multiplies four neighbouring columns of W rows and adds pairs of
// them, in 16 bits with saturation; vpaddw sums these pairs modulo 2^16. Two instructions do the work of four
// multiply-adds of fp32, and nothing is widened before the end of a part of kPart columns. This is exact because
//   - a pair does not saturate: points are bytes from 1 to 127, candidates from -127 to 127, 2 127 127 < 2^15;
//   - a sum may wrap while it is formed, if the sum without the offset of the points fits 16 bits. Each of the two sums
//     of a part has up to kPart / 2 products, whose sum is at most the product of the norms of the two halves
//     (Cauchy-Schwarz). The scales of rows keep those norms below kPointNorm and kCandidateNorm (PartNorms), whose
//     product is below 2^15.
#pragma once

#include "../pack.hpp"

#define KVBENCH_INT8 gnu::target("avx2")

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// Rows of a tile.
constexpr int kBoundRows = 4;
/// Points are bytes q + kPointOffset with |q| <= kPointLimit, candidates signed bytes |q| <= kCandidateLimit.
constexpr int kPointOffset = 64, kPointLimit = 63, kCandidateLimit = 127;
/// Sums of this many products fit 32 bits.
constexpr Index kInt8Columns = 1 << 16;
/// Columns whose products are summed in 16 bits.
constexpr Index kPart = 64;
constexpr int kPointNorm = 140, kCandidateNorm = 234;
static_assert(2 * (kPointOffset + kPointLimit) * kCandidateLimit < 1 << 15 && kPointNorm * kCandidateNorm < 1 << 15);

/// Whether bounds exclude nearly as many candidates as scores do. Those of 7 bits do not: what they leave is scored in
/// fp32 as soon as it is found.
constexpr bool kTightBounds = false;

/// Numbers that cancel the offset of the points, of one candidate of d columns: one for each part.
inline Index int8_starts(Index d) { return (d + kPart - 1) / kPart; }

inline IntVec rounded(Vec x) { return IntVec(_mm256_cvtps_epi32(__m256(x))); }

/// Writes the W bytes q + offset.
inline void store_bytes(IntVec q, int offset, std::uint8_t* out) {
  const __m256i low = _mm256_set1_epi32(0x0c080400);
  const __m256i fours = _mm256_shuffle_epi8(__m256i(q), low);
  const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_add_epi8(bytes, _mm_set1_epi8(static_cast<char>(offset))));
}

/// In all lanes: the sum of those lanes whose columns enter the same sum of 16 bits, columns 0 and 1 of every four or
/// the others.
template <class V>
inline V half_sums(V x) {
  x += swap_lanes<1>(x);
  return x + swap_lanes<4>(x);
}

/// Squared norms of the halves of the parts of a row, whose columns come in order.
struct PartNorms {
  Vec part = {}, largest = {};

  void add(Vec y, Index column) {
    if (column % kPart == 0) close();
    part = fma(y, y, part);
  }

  /// The scale from which on no half is longer than kPointNorm or kCandidateNorm as integers. Rounding to integers
  /// lengthens a half by at most sqrt(kPart / 2) / 2 < 2.9; 2^-10 covers that of the norm.
  float least_scale(bool point, Index /*d*/) {
    close();
    const float limit = static_cast<float>(point ? kPointNorm : kCandidateNorm) - 3;
    return __builtin_sqrtf(max(largest)) * (1 + 0x1p-10f) / limit;
  }

 private:
  void close() {
    largest = max(largest, half_sums(part));
    part = Vec{};
  }
};

/// The starts of a candidate from its integers, whose columns come in order: two numbers of 16 bits for each part.
struct Int8Starts {
  IntVec sums = {};

  void add(IntVec q, Index column, std::int32_t* out) {
    if (column > 0 && column % kPart == 0) out[column / kPart - 1] = closed();
    sums += q;
  }
  void finish(Index d, std::int32_t* out) { out[int8_starts(d) - 1] = closed(); }

 private:
  std::int32_t closed() {
    const IntVec halves = half_sums(sums) * -kPointOffset;
    sums = IntVec{};
    const auto low = static_cast<std::uint32_t>(halves[0]) & 0xffff, high = static_cast<std::uint32_t>(halves[2]) << 16;
    return static_cast<std::int32_t>(low | high);
  }
};

/// One vector of sums of 16 bits, widened: the product of each lane.
inline IntVec widened(__m256i sums) { return IntVec(_mm256_madd_epi16(sums, _mm256_set1_epi16(1))); }

/// acc[r] += or, where it is the first part, = the products of part p of a row.
template <bool First>
[[gnu::always_inline]] inline void add_part(const std::int8_t* rows, Index pitch, const std::int32_t* starts,
                                            const std::uint8_t* strip, Index d, Index p, IntVec (&acc)[kBoundRows][2]) {
  const Index parts = int8_starts(d), end = min((d + 3) / 4, (p + 1) * (kPart / 4));
  __m256i sums[kBoundRows][2];
#pragma GCC unroll 4
  for (int r = 0; r < kBoundRows; ++r) sums[r][0] = sums[r][1] = _mm256_set1_epi32(starts[r * parts + p]);
#pragma GCC unroll 4
  for (Index c = p * (kPart / 4); c < end; ++c) {
    const __m256i s0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(strip + c * 4 * kStrip));
    const __m256i s1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(strip + c * 4 * kStrip + 32));
#pragma GCC unroll 4
    for (int r = 0; r < kBoundRows; ++r) {
      const __m256i x = _mm256_set1_epi32(*reinterpret_cast<const UnalignedInt*>(rows + r * pitch + 4 * c));
      sums[r][0] = _mm256_add_epi16(sums[r][0], _mm256_maddubs_epi16(s0, x));
      sums[r][1] = _mm256_add_epi16(sums[r][1], _mm256_maddubs_epi16(s1, x));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kBoundRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) acc[r][v] = First ? widened(sums[r][v]) : acc[r][v] + widened(sums[r][v]);
}

/// acc[r] = <q of row r, q of each lane of the strip>, exact: rows of signed bytes `pitch` apart, a strip that
/// pack_int8() made of points, the starts of the rows.
[[gnu::always_inline]] inline void int8_products(const std::int8_t* rows, Index pitch, const std::int32_t* starts,
                                                 const std::uint8_t* strip, Index d, IntVec (&acc)[kBoundRows][2]) {
  add_part<true>(rows, pitch, starts, strip, d, 0, acc);
  for (Index p = 1; p < int8_starts(d); ++p) add_part<false>(rows, pitch, starts, strip, d, p, acc);
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
