// SPDX-License-Identifier: Apache-2.0
// Hand-computed examples run on the reference back end.
#pragma once

#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <support/backends.hpp>

namespace kvbench::test {

using testing::ref;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
Buffer<T> matrix(Backend& backend, std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> data;
  for (const auto& row : rows) data.insert(data.end(), row.begin(), row.end());
  const Index count = static_cast<Index>(rows.size());
  return backend.adopt(data, count, count == 0 ? 0 : static_cast<Index>(data.size()) / count);
}

template <class T>
Buffer<T> column(Backend& backend, std::vector<T> data) {
  const Index count = static_cast<Index>(data.size());
  return backend.adopt(std::move(data), count);
}

template <class T>
void check_near(const std::vector<T>& actual, const std::vector<T>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    if (std::isinf(expected[i]))
      CHECK(actual[i] == expected[i]);
    else
      CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

}  // namespace kvbench::test
