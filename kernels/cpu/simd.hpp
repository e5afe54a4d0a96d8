// SPDX-License-Identifier: Apache-2.0
// Vectors of KVBENCH_WIDTH floats for the sources of cpu/, which are compiled once for each instruction set. Everything
// here has internal linkage, and those sources use no inline function or template of any other header: otherwise the
// linker could keep the copy of one instruction set for all of them.
#pragma once

#include <cstdint>
#if KVBENCH_WIDTH > 4
#include <immintrin.h>
#endif

#include "../kernels.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

constexpr int W = KVBENCH_WIDTH;
/// Matrix kernels work on tiles of kTileRows x kStrip: two vectors wide, and as high as the registers allow.
constexpr int kStrip = 2 * W;
constexpr int kTileRows = W == 16 ? 8 : W == 8 ? 6 : 4;

using Vec = float __attribute__((vector_size(4 * KVBENCH_WIDTH)));
using IntVec = std::int32_t __attribute__((vector_size(4 * KVBENCH_WIDTH)));
using UintVec = std::uint32_t __attribute__((vector_size(4 * KVBENCH_WIDTH)));
// Typedefs, because clang ignores `aligned` in a using-declaration.
typedef float UnalignedVec __attribute__((vector_size(4 * KVBENCH_WIDTH), aligned(4), may_alias));
typedef std::int32_t UnalignedIntVec __attribute__((vector_size(4 * KVBENCH_WIDTH), aligned(4), may_alias));
typedef std::int32_t UnalignedInt __attribute__((aligned(1), may_alias));

inline Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
inline IntVec load(const std::int32_t* p) { return *reinterpret_cast<const UnalignedIntVec*>(p); }
inline void store(float* p, Vec x) { *reinterpret_cast<UnalignedVec*>(p) = x; }
inline void store(std::int32_t* p, IntVec x) { *reinterpret_cast<UnalignedIntVec*>(p) = x; }
inline Vec broadcast(float x) { return x - Vec{}; }
inline IntVec broadcast(std::int32_t x) { return x - IntVec{}; }

/// The first `count` lanes at p, zeros in the others.
inline Vec load_first(const float* p, Index count) {
  if (count >= W) return load(p);
  alignas(64) float lane[W] = {};
  for (Index i = 0; i < count; ++i) lane[i] = p[i];
  return load(lane);
}

/// a * b + c; one rounding where the instruction set has FMA.
inline Vec fma(Vec a, Vec b, Vec c) {
#if KVBENCH_WIDTH == 16
  return Vec(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif KVBENCH_WIDTH == 8
  return Vec(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  return a * b + c;
#endif
}

/// As many doubles as fill a vector.
using DoubleVec = double __attribute__((vector_size(4 * KVBENCH_WIDTH)));

inline DoubleVec fma(DoubleVec a, DoubleVec b, DoubleVec c) {
#if KVBENCH_WIDTH == 16
  return DoubleVec(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
#elif KVBENCH_WIDTH == 8
  return DoubleVec(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#else
  return a * b + c;
#endif
}

/// base[ids[i]] in lane i.
inline Vec gather(const float* base, IntVec ids) {
#if KVBENCH_WIDTH == 16
  return Vec(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, __m512i(ids), base, 4));
#elif KVBENCH_WIDTH == 8
  return Vec(_mm256_i32gather_ps(base, __m256i(ids), 4));
#else
  Vec out;
  for (int i = 0; i < W; ++i) out[i] = base[ids[i]];
  return out;
#endif
}

inline Vec max(Vec a, Vec b) {
#if KVBENCH_WIDTH == 8
  return Vec(_mm256_max_ps(__m256(a), __m256(b)));
#else
  return a > b ? a : b;
#endif
}

/// first, first + 1, ...
inline IntVec lane_numbers(Index first) {
  IntVec lanes{};
  for (int i = 0; i < W; ++i) lanes[i] = i;
  return lanes + static_cast<std::int32_t>(first);
}

inline Vec magnitude(Vec x) { return Vec(IntVec(x) & 0x7fffffff); }

inline Vec select(IntVec mask, Vec a, Vec b) { return mask ? a : b; }
inline IntVec select(IntVec mask, IntVec a, IntVec b) { return mask ? a : b; }

/// One bit per lane; lanes of a mask are 0 or -1.
inline std::uint32_t bits(IntVec mask) {
#if KVBENCH_WIDTH == 16
  return _mm512_movepi32_mask(__m512i(mask));
#elif KVBENCH_WIDTH == 8
  return static_cast<std::uint32_t>(_mm256_movemask_ps(__m256(mask)));
#else
  std::uint32_t result = 0;
  for (int i = 0; i < W; ++i) result |= (static_cast<std::uint32_t>(mask[i]) & 1u) << i;
  return result;
#endif
}

#if KVBENCH_WIDTH == 8
/// places[mask]: the lanes that `mask` names, one byte each, the first in the lowest byte.
struct LanePlaces {
  std::uint64_t places[256] = {};
  constexpr LanePlaces() {
    for (unsigned mask = 0; mask < 256; ++mask)
      for (unsigned lane = 0, at = 0; lane < 8; ++lane)
        if ((mask >> lane & 1u) != 0) places[mask] |= std::uint64_t{lane} << 8 * at++;
  }
};
constexpr LanePlaces kLanePlaces;
#endif

/// Writes the lanes of x that `mask` names, one after the other, and returns how many; what follows them, up to out +
/// W, may be overwritten.
inline Index compress(IntVec x, std::uint32_t mask, std::int32_t* out) {
#if KVBENCH_WIDTH == 16
  store(out, IntVec(_mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), __m512i(x))));
  return __builtin_popcount(mask);
#elif KVBENCH_WIDTH == 8
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLanePlaces.places + mask));
  store(out, IntVec(_mm256_permutevar8x32_epi32(__m256i(x), _mm256_cvtepu8_epi32(bytes))));
  return __builtin_popcount(mask);
#else
  Index count = 0;
  for (; mask != 0; mask &= mask - 1) out[count++] = x[__builtin_ctz(mask)];
  return count;
#endif
}

/// Lane i has lane i ^ Distance; Distance is a power of two below W.
template <int Distance, class V>
inline V swap_lanes(V x) {
#if KVBENCH_WIDTH == 16
  if constexpr (Distance == 8)
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  else if constexpr (Distance == 4)
    return __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  else if constexpr (Distance == 2)
    return __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  else
    return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif KVBENCH_WIDTH == 8
  if constexpr (Distance == 4)
    return __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
  else if constexpr (Distance == 2)
    return __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
  else
    return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
  if constexpr (Distance == 2)
    return __builtin_shufflevector(x, x, 2, 3, 0, 1);
  else
    return __builtin_shufflevector(x, x, 1, 0, 3, 2);
#endif
}

/// In all lanes: op over the lanes, by halves: the order is part of the result.
template <int Distance = W / 2, class V, class F>
inline V fold(V x, F op) {
  x = op(x, swap_lanes<Distance>(x));
  if constexpr (Distance > 1)
    return fold<Distance / 2>(x, op);
  else
    return x;
}
template <class V>
inline auto sum(V x) {
  return fold(x, [](V a, V b) { return a + b; })[0];
}
inline float max(Vec x) {
  return fold(x, [](Vec a, Vec b) { return max(a, b); })[0];
}

constexpr float kInfinity = __builtin_inff();

/// e^x for x <= 88, within 2 ulp; 0 below the smallest normal number and for -inf.
/// x = n ln 2 + r, |r| <= ln(2)/2; e^r by a polynomial fitted to a relative error of 3e-9; 2^n enters the exponent
/// bits.
inline Vec exp(Vec x) {
  const Vec shift = broadcast(0x1.8p23f);
  const Vec shifted = fma(x, broadcast(0x1.715476p0f), shift);
  const Vec n = shifted - shift;
  Vec r = fma(n, broadcast(-0x1.62e400p-1f), x);
  r = fma(n, broadcast(-0x1.7f7d1cp-20f), r);
  Vec p = fma(broadcast(0x1.6a2348p-10f), r, broadcast(0x1.123a6cp-7f));
  p = fma(p, r, broadcast(0x1.5558f4p-5f));
  p = fma(p, r, broadcast(0x1.555490p-3f));
  p = fma(p, r, broadcast(0x1.fffffcp-2f));
  p = fma(p, r, broadcast(1.0f));
  p = fma(p, r, broadcast(1.0f));
  const auto scaled =
      IntVec(UintVec(p) + (UintVec(shifted) << 23));  // wraps where x is too small, and is discarded there
  return Vec(scaled & (x >= broadcast(-87.33654f)));
}

inline Index min(Index a, Index b) { return a < b ? a : b; }
inline Index max(Index a, Index b) { return a > b ? a : b; }
inline Index clamp(Index x, Index low, Index high) { return min(max(x, low), high); }
inline Index round_up(Index n, Index multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Sum of squares in fp64; the order is part of the result.
inline double squared_norm(const float* row, Index n) {
  constexpr int H = W / 2;
  typedef float Floats __attribute__((vector_size(4 * H), aligned(4), may_alias));
  using Doubles = double __attribute__((vector_size(8 * H)));
  Doubles acc[4] = {};
  Index c = 0;
  for (; c + 4 * H <= n; c += 4 * H)
    for (int i = 0; i < 4; ++i) {
      const Doubles x = __builtin_convertvector(*reinterpret_cast<const Floats*>(row + c + i * H), Doubles);
      acc[i] += x * x;
    }
  double total = 0;
  for (; c < n; ++c) total += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  const Doubles lanes = (acc[0] + acc[1]) + (acc[2] + acc[3]);
  for (int i = 0; i < H; ++i) total += lanes[i];
  return total;
}

/// `count` elements of scratch memory.
template <class T>
inline T* scratch(Context& context, int slot, Index count) {
  return static_cast<T*>(context.workspace.get(slot, static_cast<std::size_t>(count) * sizeof(T)));
}

/// Calls f with the number of rows as a compile-time constant, 1 <= rows <= kTileRows.
template <int Rows = kTileRows, class F>
inline void with_rows(Index rows, F f) {
  if constexpr (Rows > 1)
    if (rows < Rows) return with_rows<Rows - 1>(rows, f);
  f.template operator()<Rows>();
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
