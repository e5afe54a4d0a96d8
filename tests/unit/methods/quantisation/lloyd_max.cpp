// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include <kvbench/methods/quantisation/group_codec.hpp>

#include "codecs.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("in three dimensions a coordinate is uniform, and its levels are equally spaced") {
  for (const int bits : {1, 2, 3, 4}) {
    const auto book = sphere_codebook(3, bits);
    const int count = 1 << bits;
    REQUIRE(std::ssize(book->levels) == count);
    REQUIRE(std::ssize(book->midpoints) == count - 1);
    for (int i = 0; i < count; ++i)
      CHECK(book->levels[static_cast<std::size_t>(i)] == doctest::Approx((2.0 * i + 1 - count) / count).epsilon(1e-6));
    CHECK(book->midpoints[static_cast<std::size_t>(count / 2 - 1)] == 0);
  }
}

TEST_CASE("the two levels of one bit are the mean magnitude of a coordinate") {
  CHECK(sphere_codebook(2, 1)->levels[1] == doctest::Approx(2 / std::numbers::pi).epsilon(1e-6));
  for (const Index d : {2, 5, 64, 128, 1024}) {
    const auto dimensions = static_cast<double>(d);
    const double mean = sphere_factor(dimensions) / std::sqrt(dimensions * std::numbers::pi / 2);
    CHECK(sphere_codebook(d, 1)->levels[1] == doctest::Approx(mean).epsilon(1e-6));
    CHECK(sphere_codebook(d, 1)->levels[0] == -sphere_codebook(d, 1)->levels[1]);
  }
}

TEST_CASE("in many dimensions the levels are those of a normal number") {
  // Max, Quantizing for minimum distortion (1960), table 1: 4 levels 0.4528, 1.510; 8 levels 0.2451, 0.7560, 1.344,
  // 2.152.
  const double sigma = 1 / std::sqrt(65'536.0);
  const auto four = sphere_codebook(65'536, 2), eight = sphere_codebook(65'536, 3);
  CHECK(four->levels[2] / sigma == doctest::Approx(0.4528).epsilon(2e-4));
  CHECK(four->levels[3] / sigma == doctest::Approx(1.510).epsilon(5e-4));
  CHECK(eight->levels[4] / sigma == doctest::Approx(0.2451).epsilon(3e-4));
  CHECK(eight->levels[5] / sigma == doctest::Approx(0.7560).epsilon(3e-4));
  CHECK(eight->levels[6] / sigma == doctest::Approx(1.344).epsilon(5e-4));
  CHECK(eight->levels[7] / sigma == doctest::Approx(2.152).epsilon(5e-4));
}

TEST_CASE("vLLM's codebooks are those of its centroids.py") {
  // Printed by the same iteration in Python.
  const std::vector<double> three = {0.0306229492, 0.0944556879, 0.167897501, 0.268793693};
  const std::vector<double> four = {0.0160534576, 0.0485172239, 0.0821099898, 0.11780603,
                                    0.157032196,  0.20223522,   0.25855589,   0.341365277};
  for (const auto& positive : {three, four}) {
    const auto book = vllm_codebook(64, positive.size() == 4 ? 3 : 4);
    REQUIRE(book->levels.size() == 2 * positive.size());
    for (std::size_t i = 0; i < positive.size(); ++i) {
      CHECK(book->levels[positive.size() + i] == doctest::Approx(positive[i]).epsilon(2e-7));
      CHECK(book->levels[positive.size() - 1 - i] == doctest::Approx(-positive[i]).epsilon(2e-7));
    }
  }
}

TEST_CASE("a row is rounded to levels times its norm, and larger numbers to no smaller ones") {
  const GroupCodec codec(
      {.format = {.group = 3, .scale = kernels::Scale::norm, .grid = kernels::Grid::codebook, .bits = 2},
       .codebook = sphere_codebook(3, 2),
       .encode_with_stored = false});
  // (2, -1, 2) / 3 lies between the midpoints -1/2, 0, 1/2: levels 3/4, -1/4, 3/4.
  const std::vector<float> row = decoded(codec, {2, -1, 2}, 3);
  for (const auto& [c, expected] : {std::pair{0, 2.25}, {1, -0.75}, {2, 2.25}})
    CHECK(row[static_cast<std::size_t>(c)] == doctest::Approx(expected).epsilon(1e-6));

  std::vector<float> numbers = random_numbers(64, 3, 4);
  std::ranges::sort(numbers);
  const GroupCodec wide(
      {.format = {.group = 64, .scale = kernels::Scale::norm, .grid = kernels::Grid::codebook, .bits = 4},
       .codebook = sphere_codebook(64, 4),
       .encode_with_stored = false});
  CHECK(std::ranges::is_sorted(decoded(wide, numbers, 64)));
}
