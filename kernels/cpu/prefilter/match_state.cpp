// SPDX-License-Identifier: Apache-2.0
#include "match_state.hpp"

#include <new>

namespace kvbench::kernels::cpu {

namespace {

constexpr std::size_t kHeader = 64;  // of the views, rounded up to a cache line
static_assert(sizeof(MatchState) <= kHeader);

Index pitch(Index d) { return (d + kMatchStatePitch - 1) / kMatchStatePitch * kMatchStatePitch; }

}  // namespace

std::size_t match_state_bytes(Index n, Index d) {
  return kHeader + static_cast<std::size_t>(d + 4 * n) * sizeof(float) + static_cast<std::size_t>(n * pitch(d));
}

MatchState* place_match_state(void* memory, Index n, Index d) {
  auto* numbers = reinterpret_cast<float*>(static_cast<std::byte*>(memory) + kHeader);
  float* scale = numbers + d;
  return new (memory) MatchState{.usable = false,
                                 .centre = numbers,
                                 .scale = scale,
                                 .size = scale + n,
                                 .error = scale + 2 * n,
                                 .frame = scale + 3 * n,
                                 .rows = reinterpret_cast<std::uint8_t*>(scale + 4 * n)};
}

}  // namespace kvbench::kernels::cpu
