// SPDX-License-Identifier: Apache-2.0
// Radix sort, which has no branches that depend on comparisons: half of them would be mispredicted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace kvbench::replay {

/// Sorts by key_of(item), a std::uint32_t, the smallest first; equal keys keep their order. Least significant digit
/// first, with no more digits than the range of the keys needs: O(digits * (items + 2^11)).
template <class T, class KeyOf>
void radix_sort(std::vector<T>& items, KeyOf key_of) {
  constexpr int digit_bits = 11;
  if (items.size() < 2) return;
  std::uint32_t least = ~0u, most = 0;
  for (const T& item : items) {
    least = std::min(least, key_of(item));
    most = std::max(most, key_of(item));
  }
  const int key_bits = std::bit_width(most - least), digits = (key_bits + digit_bits - 1) / digit_bits;
  if (digits == 0) return;
  const int bits = (key_bits + digits - 1) / digits;
  std::vector<T> sorted(items.size());
  std::vector<std::uint32_t> place(std::size_t{1} << bits);
  for (int shift = 0; shift < digits * bits; shift += bits) {
    const auto digit = [&](const T& item) { return (key_of(item) - least) >> shift & ((1u << bits) - 1); };
    std::ranges::fill(place, 0u);
    for (const T& item : items) ++place[digit(item)];
    std::uint32_t before = 0;
    for (std::uint32_t& p : place) before += std::exchange(p, before);
    for (const T& item : items) sorted[place[digit(item)]++] = item;
    items.swap(sorted);
  }
}

}  // namespace kvbench::replay
