// SPDX-License-Identifier: Apache-2.0
// The random numbers of methods, and random matrices that a deployment draws again from its seed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/kernels/philox.hpp>
#include <kvbench/methods/contract/inputs.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

/// 32-bit FNV-1a.
constexpr std::uint32_t fnv1a32(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return hash;
}

/// The random numbers of one method on one head: Philox with key (seed, fnv1a32(canonical method name)) and counter
/// (layer << 16 | kv head, prompt, token, draw), so every draw is the same on any thread count, in any order, on any
/// device.
class Draws {
 public:
  Draws(std::uint32_t seed, std::string_view method, const HeadPrompt& head)
      : key_{seed, fnv1a32(method)},
        head_(static_cast<std::uint32_t>(head.layer.value) << 16 | static_cast<std::uint32_t>(head.head.value)),
        prompt_(static_cast<std::uint32_t>(head.prompt.value)) {}

  /// The four words of this token and draw number.
  PhiloxBlock block(Index token, std::uint32_t draw = 0) const {
    return philox4x32({{head_, prompt_, static_cast<std::uint32_t>(token), draw}}, key_);
  }
  /// Uniform in (0, 1).
  double uniform(Index token, std::uint32_t draw = 0) const {
    const PhiloxBlock words = block(token, draw);
    return uniform52(words.x[0], words.x[1]);
  }

 private:
  PhiloxKey key_;
  std::uint32_t head_;
  std::uint32_t prompt_;
};

/// min(count, tokens) random tokens of 0 .. tokens - 1 in increasing order: those with the lowest draws, ties
/// (probability 2^-52) by index. The tokens of a count are a subset of those of every larger count.
std::vector<TokenId> random_tokens(const Draws& draws, Index tokens, Index count);

/// [rows, cols] independent numbers of N(0, 1), by Box and Muller. Matrices of different parts are independent.
std::vector<double> gaussian_matrix(const Draws& draws, std::uint32_t part, Index rows, Index cols);

/// [rows, cols]: gaussian_matrix() with each block of `cols` consecutive rows made orthonormal, in their order, by Gram
/// and Schmidt. A whole block is a uniformly random orthogonal matrix.
std::vector<double> orthonormal_matrix(const Draws& draws, std::uint32_t part, Index rows, Index cols);

/// A [rows, cols] matrix for ProjectRows, and its transpose [cols, rows].
struct MatrixPair {
  Buffer<const float> matrix, transpose;
};
MatrixPair matrix_pair(const std::vector<double>& matrix, Index rows, Index cols, double factor, Backend& backend);

}  // namespace kvbench::methods
