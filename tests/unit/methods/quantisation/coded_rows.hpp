// SPDX-License-Identifier: Apache-2.0
// The codecs of a quantiser for literal keys, and what they make of rows.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <kvbench/methods/registry.hpp>

#include <kvbench/testing/head.hpp>

#include "codecs.hpp"

namespace kvbench::testing {

using Floats = std::vector<float>;

/// A prompt whose keys and values are these [n, d] numbers.
inline methods::HeadPrompt coded_prompt(const Floats& rows, Index d, Backend& backend = ref()) {
  const auto buffer = backend.adopt(Floats(rows), std::ssize(rows) / d, d);
  return {.keys = buffer, .values = buffer};
}

/// The codecs of the keys of these heads.
inline std::vector<std::shared_ptr<const methods::Codec>> key_codecs(const std::string& name,
                                                                     const std::vector<methods::Assignment>& settings,
                                                                     const std::vector<methods::HeadPrompt>& heads) {
  const methods::MethodInfo& info = methods::find_method(name);
  std::vector<std::shared_ptr<const methods::Codec>> keys;
  for (const methods::Codecs& codecs : info.quantiser.layer_codecs(
           heads, info.bind(settings), info.quantiser.levels(info.bind(settings)).size() - 1, 7, ref()))
    keys.push_back(codecs.keys);
  return keys;
}

/// A larger number is not decoded to a smaller one within a row's blocks of `block` columns.
inline void check_monotonic(const Floats& rows, const Floats& out, std::size_t block) {
  for (std::size_t begin = 0; begin < rows.size(); begin += block) {
    std::vector<std::size_t> order(block);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::sort(order, {}, [&](std::size_t i) { return rows[i]; });
    for (std::size_t k = 1; k < block; ++k) CHECK(out[order[k - 1]] <= out[order[k]]);
  }
}

inline float largest_of(const Floats& rows, std::size_t begin, std::size_t count) {
  float largest = 0;
  for (std::size_t i = begin; i < begin + count; ++i) largest = std::max(largest, std::fabs(rows[i]));
  return largest;
}

/// Rows of 16: random ones, all 0, one huge, subnormal, constant, ties of small floating-point formats.
inline Floats hostile_rows() {
  Floats rows = random_numbers(16 * 64, 3, 0);
  const auto add = [&](auto number) {
    for (int i = 0; i < 16; ++i) rows.push_back(number(i));
  };
  add([](int) { return 0.0f; });
  add([](int i) { return i == 5 ? -3e30f : static_cast<float>(i) / 7; });
  add([](int i) { return static_cast<float>(i - 8) * std::numeric_limits<float>::denorm_min(); });
  add([](int) { return -0.3f; });
  add([](int i) { return 1 + static_cast<float>(i) / 16; });
  add([](int i) { return static_cast<float>(i - 8) / 4; });
  return rows;
}

}  // namespace kvbench::testing
