// SPDX-License-Identifier: Apache-2.0
// Heads of two channels that RoPE turns, for methods that look at queries before RoPE.
#pragma once

#include <cmath>

#include <support/small.hpp>

namespace kvbench::testing {

/// Two channels; `queries` before RoPE, which turns them by one radian for each position; values of length 1.
inline HeadData turning_head(const std::vector<float>& keys, const std::vector<float>& queries, Index n) {
  HeadData head = small_head(std::vector<float>(keys.size() / 2), n);
  head.d = 2;
  head.keys = keys;
  head.rope = methods::Rope{};
  head.queries.clear();
  for (std::size_t i = 0; i < queries.size(); i += 2) {
    const double c = std::cos(static_cast<double>(i / 2)), s = std::sin(static_cast<double>(i / 2));
    head.queries.push_back(static_cast<float>(queries[i] * c - queries[i + 1] * s));
    head.queries.push_back(static_cast<float>(queries[i] * s + queries[i + 1] * c));
  }
  std::ranges::fill(head.values, 1.0f);
  return head;
}

/// A key of length `length` at the angle, in radians.
inline void add_key(std::vector<float>& keys, double length, double angle) {
  keys.push_back(static_cast<float>(length * std::cos(angle)));
  keys.push_back(static_cast<float>(length * std::sin(angle)));
}

}  // namespace kvbench::testing
