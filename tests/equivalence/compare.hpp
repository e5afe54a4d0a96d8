// SPDX-License-Identifier: Apache-2.0
// Seeded inputs and comparison with the reference.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backends.hpp"

namespace kvbench::test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Largest accepted difference from the reference, relative to the larger of 1 and the reference's magnitude.
template <class T>
constexpr double tolerance = 0;
template <>
inline constexpr double tolerance<float> = 1e-5;
template <>
inline constexpr double tolerance<double> = 1e-12;

template <class T>
bool near(T actual, T expected) {
  if constexpr (tolerance < T >> 0) {
    if (std::isnan(expected)) return std::isnan(actual);
    if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
    const auto difference = std::fabs(static_cast<double>(actual) - static_cast<double>(expected));
    return difference <= tolerance<T> * std::fmax(1.0, std::fabs(static_cast<double>(expected)));
  } else {
    return actual == expected;
  }
}

template <class T>
void check_equivalent(const std::vector<T>& actual, const std::vector<T>& expected, const char* what) {
  REQUIRE(actual.size() == expected.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (near(actual[i], expected[i])) continue;
    if (wrong++ == 0) MESSAGE(what << "[" << i << "] is " << actual[i] << ", the reference has " << expected[i]);
  }
  CHECK_MESSAGE(wrong == 0, what << ": " << wrong << " of " << actual.size() << " differ");
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

class Random {
 public:
  explicit Random(std::uint32_t seed = 42) : engine_(seed) {}

  std::vector<float> normal(Index count, float deviation = 1) {
    std::normal_distribution<float> distribution(0, deviation);
    return generate<float>(count, [&] { return distribution(engine_); });
  }
  /// Whole numbers from -limit to limit as floats: sums of few products are exact, so ties and orders are the same
  /// everywhere.
  std::vector<float> lattice(Index count, int limit) {
    std::uniform_int_distribution<int> distribution(-limit, limit);
    return generate<float>(count, [&] { return static_cast<float>(distribution(engine_)); });
  }
  std::vector<std::int32_t> integers(Index count, std::int32_t low, std::int32_t high) {
    std::uniform_int_distribution<std::int32_t> distribution(low, high);
    return generate<std::int32_t>(count, [&] { return distribution(engine_); });
  }

 private:
  template <class T, class F>
  std::vector<T> generate(Index count, F draw) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = draw();
    return values;
  }

  std::mt19937 engine_;
};

/// Runs `check(backend)` for every back end under test, naming it in the messages.
template <class F>
void for_each_backend(F check) {
  for (const auto& backend : backends_under_test()) {
    const std::string name = std::string(backend->device()) + " " + std::string(backend->isa());
    CAPTURE(name);
    check(*backend);
  }
}

}  // namespace kvbench::test
