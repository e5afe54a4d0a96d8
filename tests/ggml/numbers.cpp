// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <array>
#include <cmath>

#include <kvbench/testing/head.hpp>

namespace kvbench::testing {
namespace {

constexpr Index width = 32;
using Numbers = std::vector<float>;

void append(Numbers& to, const Numbers& block) { to.insert(to.end(), block.begin(), block.end()); }

/// Of a number in (-2, 2): an exponent up to the largest, of either sign.
int exponent_of(double random, int largest) { return static_cast<int>(std::lround(random / 2 * largest)); }

/// Each block with an exponent of its own, or each number.
void append_random(Numbers& to, Index blocks, int largest_exponent, bool of_numbers, std::uint32_t stream) {
  const Numbers numbers = random_numbers(blocks * width, stream, 0);
  const Numbers exponents = random_numbers(blocks * width, stream, 1);
  for (Index i = 0; i < blocks * width; ++i) {
    const float exponent = exponents[static_cast<std::size_t>(of_numbers ? i : i / width)];
    to.push_back(std::ldexp(numbers[static_cast<std::size_t>(i)], exponent_of(exponent, largest_exponent)));
  }
}

/// Numbers k / 2 whose quotients are exact: those of range, by the largest number `peak` of this sign or by the range.
void append_ties(Numbers& to, float peak, bool both_signs, int exponent, std::uint32_t stream) {
  Numbers block = random_numbers(width, stream, 0);
  for (float& x : block) {
    const float share = both_signs ? x / 2 : std::fabs(x) / 2;
    x = std::ldexp(std::trunc(share * 2 * std::fabs(peak)) / 2, exponent);
  }
  block[stream % width] = std::ldexp(peak, exponent);
  block[(stream + 7) % width] = 0;
  append(to, block);
}

/// One number at every place, all others `rest` times small random ones.
void append_spikes(Numbers& to, float spike, float rest, std::uint32_t stream) {
  for (std::uint32_t place = 0; place < width; ++place) {
    Numbers block = random_numbers(width, stream + place, 0);
    for (float& x : block) x *= rest;
    block[place] = spike;
    append(to, block);
  }
}

}  // namespace

std::vector<float> hostile_blocks() {
  Numbers numbers;
  append_random(numbers, 8192, 3, false, 1);
  append_random(numbers, 4096, 60, false, 2);
  append_random(numbers, 4096, 20, true, 3);
  append_random(numbers, 1024, 126, true, 4);
  for (std::uint32_t k = 0; k < 256; ++k) {
    const int exponent = static_cast<int>(k % 41) - 20;
    append_ties(numbers, 127, true, exponent, k);
    append_ties(numbers, -8, true, exponent, k);
    append_ties(numbers, 8, true, exponent, k);
    append_ties(numbers, 15, false, exponent, k);
    append_ties(numbers, 31, false, exponent, k);
  }
  // The largest scale of f16 is 65504, and 65520 rounds to infinity.
  for (const float scale : {65504.0f, 65519.0f, 65520.0f, 65536.0f, 1e30f})
    for (const float peak : {127.0f, -8.0f, 8.0f, 15.0f, 31.0f}) append_spikes(numbers, scale * peak, 1000, 5);
  for (const float spike : {3e38f, -3e38f, 1e-3f, 1e-7f, -1e-9f, 1e-30f, 1e-39f, -1e-45f})
    for (const float rest : {0.0f, 1e-8f, 1e-39f}) append_spikes(numbers, spike, rest, 6);
  const auto constants = std::to_array({0.0f, -0.0f, 1.0f, -1.0f, 0.1f, -3e38f, 3e38f, 65504.0f, 1e-8f, -1e-40f});
  for (const float x : constants) append(numbers, Numbers(width, x));
  for (const float x : constants)
    for (const float y : constants) {  // the first half and the second, so that both signs of zero come first
      Numbers block(width, x);
      std::fill(block.begin() + width / 2, block.end(), y);
      append(numbers, block);
    }
  return numbers;
}

}  // namespace kvbench::testing
