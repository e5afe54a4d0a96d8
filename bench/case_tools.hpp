// SPDX-License-Identifier: Apache-2.0
// What the cases share: inputs, and how an operation is run and read.
#pragma once

#include <random>
#include <utility>

#include "cases.hpp"

namespace kvbench::bench {

constexpr Index kTokens = 32768;

inline Buffer<float> normal(Backend& b, Index rows, Index cols, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> data(static_cast<std::size_t>(rows * cols));
  for (float& x : data) x = distribution(engine);
  return b.adopt(std::move(data), rows, cols);
}

/// Whole coordinates: distances are exact, so the choices built on them can be compared exactly. 512 groups of points.
inline Buffer<float> clustered(Backend& b, Index rows, Index cols) {
  std::mt19937 engine(3);
  std::uniform_int_distribution<int> centre(-8, 8), noise(-1, 1);
  std::vector<int> centres(static_cast<std::size_t>(512 * cols));
  for (int& x : centres) x = centre(engine);
  std::vector<float> data;
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < cols; ++c)
      data.push_back(static_cast<float>(centres[static_cast<std::size_t>(i % 512 * cols + c)] + noise(engine)));
  return b.adopt(std::move(data), rows, cols);
}

/// The values of all buffers, one after the other, as floats.
template <class... T>
std::function<std::vector<float>()> reader(Backend& b, Buffer<T>... buffers) {
  return [&b, buffers...] {
    std::vector<float> all;
    const auto append = [&](const auto& values) {
      for (const auto value : values) all.push_back(static_cast<float>(value));
    };
    (append(b.read(buffers)), ...);
    return all;
  };
}

template <template <template <class> class> class Op>
std::function<void()> runner(Backend& b, Op<Buffer> op) {
  return [&b, op] { b.run(op); };
}

/// Operations that group, merge and select tokens.
std::vector<Case> selection_cases();
/// Operations that round rows to few bits.
std::vector<Case> code_cases();

}  // namespace kvbench::bench
