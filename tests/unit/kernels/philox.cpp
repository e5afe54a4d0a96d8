// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>

using namespace kvbench;

namespace {

std::vector<std::uint32_t> words(PhiloxBlock counter, PhiloxKey key) {
  const PhiloxBlock block = philox4x32(counter, key);
  return {block.x[0], block.x[1], block.x[2], block.x[3]};
}

}  // namespace

TEST_CASE("known-answer vectors of philox4x32-10 published with Random123") {
  constexpr std::uint32_t ones = 0xffffffffu;
  CHECK(words({}, {}) == std::vector<std::uint32_t>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  CHECK(words({{ones, ones, ones, ones}}, {ones, ones}) ==
        std::vector<std::uint32_t>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(words({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, {0xa4093822u, 0x299f31d0u}) ==
        std::vector<std::uint32_t>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("uniform52 returns cell midpoints: never 0, never 1") {
  CHECK(uniform52(0, 0) == 0x1p-53);
  CHECK(uniform52(0xffffffffu, 0xffffffffu) == 1 - 0x1p-53);
  CHECK(uniform52(0x80000000u, 0) == 0.5 + 0x1p-53);
}
