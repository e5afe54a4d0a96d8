// SPDX-License-Identifier: Apache-2.0
// What kernels see: qualifiers, indices, barriers, warps, intrinsics. Functions at which threads meet know the line of their
// caller, so that messages can name it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
// One copy for the block that runs: the machine poisons and swaps it. The build moves all statics of device code into a
// section of their own (CMakeLists.txt), because g++ 12 ignores a section attribute on statics of templates.
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

using Where = std::source_location;

enum class Meeting { barrier, count, any, warp, shuffle, ballot, grid };

/// All threads of the block; those with a predicate are counted.
int meet_block(Meeting kind, bool predicate, Where where);
/// The lanes of the mask. Shuffle: the bits of lane `from`, the poison where it is not in the mask. Ballot: whose `bits` are
/// not 0.
std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t bits, int from, Where where);
/// All threads of a cooperative launch.
void meet_grid(Where where);

inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % unsigned{warpSize});
}

template <class T>
T shuffle(unsigned mask, T value, int from, Where where) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = meet_warp(Meeting::shuffle, mask, bits, from, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulated

inline void __syncthreads(emulated::Where where = emulated::Where::current()) {
  emulated::meet_block(emulated::Meeting::barrier, false, where);
}
inline int __syncthreads_count(int predicate, emulated::Where where = emulated::Where::current()) {
  return emulated::meet_block(emulated::Meeting::count, predicate != 0, where);
}
inline int __syncthreads_or(int predicate, emulated::Where where = emulated::Where::current()) {
  return emulated::meet_block(emulated::Meeting::any, predicate != 0, where) > 0 ? 1 : 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, emulated::Where where = emulated::Where::current()) {
  emulated::meet_warp(emulated::Meeting::warp, mask, 0, 0, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, emulated::Where where = emulated::Where::current()) {
  return static_cast<unsigned>(emulated::meet_warp(emulated::Meeting::ballot, mask, predicate != 0, 0, where));
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

/// Threads take turns at meetings alone, so this is one step.
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
