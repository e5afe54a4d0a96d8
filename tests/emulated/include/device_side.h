// SPDX-License-Identifier: Apache-2.0
// Device code: qualifiers, indices, barriers, warp primitives, intrinsics. Functions that synchronise threads record
// the line of their caller for messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
// One copy, for the block that runs: the machine poisons and exchanges it. The build moves all statics of device code
// to a section of their own (CMakeLists.txt), because g++ 12 ignores section attributes on statics of templates.
#define __shared__ static

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) float4 {
  float x, y, z, w;
};

extern uint3 threadIdx, blockIdx;  // of the thread that runs
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulated {

/// The line of a caller. std::source_location is missing in clang 14 with libstdc++.
struct Where {
  const char* file = "";
  unsigned line = 0;
  static constexpr Where current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Sync { barrier, count, any, warp, shuffle, ballot, grid };

/// Waits for all threads of the block; returns the number of those with the predicate.
int sync_block(Sync kind, bool predicate, Where where);
/// Waits for the lanes of the mask. A shuffle returns the bits of lane `from`, or the poison where the mask does not
/// contain it; a ballot returns the lanes whose `bits` are not 0.
std::uint64_t sync_warp(Sync kind, unsigned mask, std::uint64_t bits, int from, Where where);
/// Waits for all threads of a cooperative launch.
void sync_grid(Where where);

inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % unsigned{warpSize});
}

template <class T>
T shuffle(unsigned mask, T value, int from, Where where) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = sync_warp(Sync::shuffle, mask, bits, from, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulated

inline void __syncthreads(emulated::Where where = emulated::Where::current()) {
  emulated::sync_block(emulated::Sync::barrier, false, where);
}
inline int __syncthreads_count(int predicate, emulated::Where where = emulated::Where::current()) {
  return emulated::sync_block(emulated::Sync::count, predicate != 0, where);
}
inline int __syncthreads_or(int predicate, emulated::Where where = emulated::Where::current()) {
  return emulated::sync_block(emulated::Sync::any, predicate != 0, where) > 0 ? 1 : 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, emulated::Where where = emulated::Where::current()) {
  emulated::sync_warp(emulated::Sync::warp, mask, 0, 0, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, emulated::Where where = emulated::Where::current()) {
  return static_cast<unsigned>(emulated::sync_warp(emulated::Sync::ballot, mask, predicate != 0, 0, where));
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, emulated::Where where = emulated::Where::current()) {
  return emulated::shuffle(mask, value, from % warpSize, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, emulated::Where where = emulated::Where::current()) {
  return emulated::shuffle(mask, value, emulated::lane() ^ bits, where);
}
/// Lanes below `delta` keep their own value.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, emulated::Where where = emulated::Where::current()) {
  const int from = emulated::lane() - static_cast<int>(delta);
  return emulated::shuffle(mask, value, from < 0 ? emulated::lane() : from, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, emulated::Where where = emulated::Where::current()) {
  const int from = emulated::lane() + static_cast<int>(delta);
  return emulated::shuffle(mask, value, from >= warpSize ? emulated::lane() : from, where);
}

/// Threads switch only where they synchronise, so this is atomic.
template <class T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}

inline float __fmul_rn(float a, float b) { return a * b; }  // compiled with -ffp-contract=off
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __ffs(int x) { return std::countr_zero(static_cast<unsigned>(x)) % 32 + (x != 0 ? 1 : 0); }

using std::isnan;
using std::max;
using std::min;
