// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 counter-based random numbers (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011): the same numbers in any order and on any number of threads.
#pragma once

#include <cstdint>

namespace kvbench {

struct PhiloxKey {
  std::uint32_t k0 = 0, k1 = 0;
};
struct PhiloxBlock {
  std::uint32_t x[4] = {0, 0, 0, 0};
};

/// The ten-round block function: counter and key to four independent 32-bit words.
inline PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter.x[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter.x[2];
    counter = {{static_cast<std::uint32_t>(p1 >> 32) ^ counter.x[1] ^ key.k0, static_cast<std::uint32_t>(p1),
                static_cast<std::uint32_t>(p0 >> 32) ^ counter.x[3] ^ key.k1, static_cast<std::uint32_t>(p0)}};
    key.k0 += 0x9E3779B9u;
    key.k1 += 0xBB67AE85u;
  }
  return counter;
}

/// Uniform in (0, 1) with 52 bits: the midpoints of 2^52 equal cells, so neither 0 nor 1 can occur.
inline double uniform52(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace kvbench
