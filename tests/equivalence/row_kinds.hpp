// SPDX-License-Identifier: Apache-2.0
// Rows on which a search that bounds its errors could go wrong.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "compare.hpp"

namespace kvbench::test {

struct Kind {
  const char* name;
  std::vector<float> (*rows)(Index count, Index d, std::uint32_t seed);
};

inline float& at(std::vector<float>& rows, Index d, Index i, Index c) {
  return rows[static_cast<std::size_t>(i * d + c)];
}

inline std::vector<float> normal(Index count, Index d, std::uint32_t seed) { return Random(seed).normal(count * d); }

inline std::vector<float> scaled(Index count, Index d, std::uint32_t seed, float factor) {
  auto rows = normal(count, d, seed);
  for (float& x : rows) x *= factor;
  return rows;
}

/// Nine groups whose members differ in the fourth digit: many candidates are nearly as good as the best.
inline std::vector<float> clustered(Index count, Index d, std::uint32_t seed) {
  auto rows = Random(seed).normal(count * d, 1e-4f);
  auto centres = Random(1).normal(9 * d);
  for (Index i = 0; i < count; ++i)
    for (Index c = 0; c < d; ++c) at(rows, d, i, c) += at(centres, d, i % 9, c);
  return rows;
}

/// A channel with a large mean and one with a large variance, as keys have them.
inline std::vector<float> outlier_channels(Index count, Index d, std::uint32_t seed) {
  auto rows = normal(count, d, seed);
  for (Index i = 0; i < count; ++i) {
    at(rows, d, i, 0) += 300;
    at(rows, d, i, d / 2) *= 50;
  }
  return rows;
}

/// Whole numbers, most rows three times: ties.
inline std::vector<float> repeated(Index count, Index d, std::uint32_t seed) {
  auto rows = Random(seed).lattice(count * d, 2);
  for (Index i = 0; i + 2 < count; i += 3)
    for (Index c = 0; c < d; ++c) at(rows, d, i + 1, c) = at(rows, d, i + 2, c) = at(rows, d, i, c);
  return rows;
}

inline std::vector<float> with_zero_rows(Index count, Index d, std::uint32_t seed) {
  auto rows = normal(count, d, seed);
  for (Index i = 0; i < count; i += 3)
    for (Index c = 0; c < d; ++c) at(rows, d, i, c) = 0;
  return rows;
}

inline std::vector<float> zeros(Index count, Index d, std::uint32_t) {
  return std::vector<float>(static_cast<std::size_t>(count * d));
}

/// Rows of one set from 1e-30 to 1e9.
inline std::vector<float> of_all_sizes(Index count, Index d, std::uint32_t seed) {
  auto rows = normal(count, d, seed);
  for (Index i = 0; i < count; ++i)
    for (Index c = 0; c < d; ++c) at(rows, d, i, c) *= std::pow(10.0f, static_cast<float>(i % 40) - 30);
  return rows;
}

/// Every 50th row holds one value that is not a number, or infinite.
inline std::vector<float> not_finite(Index count, Index d, std::uint32_t seed) {
  auto rows = normal(count, d, seed);
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  for (Index i = 0; i < count; i += 50) at(rows, d, i, i % d) = bad[i / 50 % 3];
  return rows;
}

/// Whole numbers: all rows are equally far from each other, and from their mean.
inline std::vector<float> equally_far(Index count, Index d, std::uint32_t) {
  std::vector<float> rows(static_cast<std::size_t>(count * d));
  for (Index i = 0; i < count; ++i) at(rows, d, i, i % d) = 3;
  return rows;
}

/// Rows in pairs of opposites, whose mean is zero. All coordinates but the last are nearly equal, so that each of them
/// is rounded in the same direction, while the last one, which is large and another for every row, decides in which. As
/// integers, equal rows seem to differ by nearly as much as their bounds allow.
inline std::vector<float> one_huge_coordinate(Index count, Index d, std::uint32_t seed) {
  std::vector<float> rows(static_cast<std::size_t>(count * d));
  for (Index i = 0; i < count; ++i) {
    const float sign = i % 2 == 0 ? 1 : -1, step = static_cast<float>((i / 2 * 37 + seed) % 101) * 0x1p-12f;
    for (Index c = 0; c < d; ++c) at(rows, d, i, c) = sign * (1 + step);
    at(rows, d, i, d - 1) = sign * static_cast<float>(3 * (1 + i / 2 % 13));
  }
  return rows;
}

/// Whole numbers in the last column, zeros in the others.
inline std::vector<float> last_axis(Index count, Index d, std::uint32_t seed) {
  std::vector<float> rows(static_cast<std::size_t>(count * d));
  const auto last = Random(seed).integers(count, -90, 90);
  for (Index i = 0; i < count; ++i) at(rows, d, i, d - 1) = static_cast<float>(last[static_cast<std::size_t>(i)]);
  return rows;
}

inline const Kind kinds[] = {
    {"normal", normal},
    {"clustered", clustered},
    {"outlier channels", outlier_channels},
    {"repeated", repeated},
    {"zero rows", with_zero_rows},
    {"zeros", zeros},
    {"1e30", [](Index n, Index d, std::uint32_t seed) { return scaled(n, d, seed, 1e30f); }},
    {"1e10", [](Index n, Index d, std::uint32_t seed) { return scaled(n, d, seed, 1e10f); }},
    {"1e-15", [](Index n, Index d, std::uint32_t seed) { return scaled(n, d, seed, 1e-15f); }},
    {"1e-30", [](Index n, Index d, std::uint32_t seed) { return scaled(n, d, seed, 1e-30f); }},
    {"denormal", [](Index n, Index d, std::uint32_t seed) { return scaled(n, d, seed, 1e-40f); }},
    {"all sizes", of_all_sizes},
    {"equally far", equally_far},
    {"one huge coordinate", one_huge_coordinate},
    {"last axis", last_axis},
    {"not finite", not_finite}};

}  // namespace kvbench::test
