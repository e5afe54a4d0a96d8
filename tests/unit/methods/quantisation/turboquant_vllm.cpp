// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "codecs.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::vector<Assignment> preset(const std::string& name) { return {{"preset", name}}; }
Codecs codecs(const std::string& name, Index d, Index dv, Backend& backend) {
  return codecs_of("turboquant@vllm", preset(name), head_of(d, dv, 1, 1, backend), 0, backend);
}

}  // namespace

TEST_CASE("turboquant@vllm: a key by hand") {
  // The positive levels of d = 2 at 3 bits are 0.17323, 0.53432, 0.94977, 1.52053, with midpoints 0.35378, 0.74205,
  // 1.23515. k = (3, 1) has norm sqrt(10), in f16 3.1621094, and H k / |k| = (4, 2) / sqrt(20) = (0.89443, 0.44721):
  // levels 0.94977, 0.53432, whose norm is 1.08976. H (0.87154, 0.49031) 3.1621094 = (3.04505, 0.85241).
  const auto backend = make_ref_backend();
  const std::vector<float> out = decoded(*codecs("3/4", 2, 2, *backend).keys, {3, 1, 0, 0}, 2, *backend);
  CHECK(out[0] == doctest::Approx(3.04505).epsilon(1e-5));
  CHECK(out[1] == doctest::Approx(0.85241).epsilon(1e-5));
  CHECK(out[2] == 0);
  CHECK(out[3] == 0);
}

TEST_CASE("turboquant@vllm: values and fp8 keys by hand") {
  const auto backend = make_ref_backend();
  // Minimum 0, step 1: halves are rounded up.
  CHECK(decoded(*codecs("4/4", 4, 4, *backend).values, {0, 6.5, 15, 2.4f}, 4, *backend) ==
        std::vector<float>{0, 7, 15, 2});
  CHECK(decoded(*codecs("3/3", 4, 4, *backend).values, {0, 2.5, 7, 2.4f}, 4, *backend) ==
        std::vector<float>{0, 3, 7, 2});
  CHECK(decoded(*codecs("3/3", 4, 4, *backend).values, {3, 3, 3, 3}, 4, *backend) == std::vector<float>{3, 3, 3, 3});
  // From 256 on e4m3 has steps of 32, from 0.25 on of 1/32; its largest number is 448.
  CHECK(decoded(*codecs("fp8/4", 4, 4, *backend).keys, {300, -1000, 0.3f, 0}, 4, *backend) ==
        std::vector<float>{288, -448, 0.3125, 0});
}

TEST_CASE("turboquant@vllm: decoded keys keep their norm; values stay within half a step") {
  const Index d = 16;
  const std::vector<float> rows = hostile_rows(d);
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    for (const auto& [name, bits] : {std::pair{"4/4", 4}, {"3/3", 3}}) {
      const Codecs both = codecs(name, d, d, *backend);
      const std::vector<float> keys = decoded(*both.keys, rows, d, *backend),
                               values = decoded(*both.values, rows, d, *backend);
      for (Index i = 0; i < static_cast<Index>(rows.size()) / d; ++i) {
        const double norm = std::sqrt(product(rows, rows, d, i));
        CHECK(std::fabs(std::sqrt(product(keys, keys, d, i)) - norm) <= norm / 2048 * 1.001 + 3e-8);
        const auto row = rows.begin() + i * d;
        const auto [low, high] = std::minmax_element(row, row + d);
        const double steps = (1 << bits) - 1, step = (*high - *low) / steps;
        // f16 rounds the step and the minimum by 2^-11 of them, or by half of the smallest number, 2^-25.
        const double bound =
            step / 2 + (steps * step + std::fabs(*low)) / 2048 * 1.001 + (steps + 1) * std::ldexp(1.0, -25);
        for (Index c = 0; c < d; ++c) {
          const auto at = static_cast<std::size_t>(i * d + c);
          CHECK(std::fabs(values[at] - rows[at]) <= bound);
        }
      }
    }
  }
}

TEST_CASE("turboquant@vllm: the outer layers are whole, but at most half of them") {
  const auto backend = make_ref_backend();
  const auto whole = [&](Index layer, Index layers) {
    const Codecs both = codecs_of("turboquant@vllm", {}, head_of(8, 8, layer, layers, *backend), 0, *backend);
    CHECK((both.keys == nullptr) == (both.values == nullptr));
    return both.keys == nullptr;
  };
  for (Index layer = 0; layer < 30; ++layer) CHECK(whole(layer, 30) == (layer < 2 || layer >= 28));
  CHECK(whole(0, 3));
  CHECK_FALSE(whole(1, 3));
  CHECK(whole(2, 3));
  CHECK_FALSE(whole(0, 1));
}

TEST_CASE("turboquant@vllm: bytes, and what is refused") {
  const auto backend = make_ref_backend();
  const auto key_bytes = [&](const char* name) { return bytes(*codecs(name, 64, 32, *backend).keys, 10, 64); };
  const auto value_bytes = [&](const char* name) { return bytes(*codecs(name, 64, 32, *backend).values, 10, 32); };
  CHECK(key_bytes("4/4") == 10 * (32 + 2));
  CHECK(key_bytes("3/4") == 10 * (24 + 2));
  CHECK(key_bytes("fp8/4") == 10 * 64);
  CHECK(value_bytes("4/4") == 10 * (16 + 4));
  CHECK(value_bytes("3/3") == 10 * (12 + 4));
  CHECK_THROWS_WITH_AS(codecs("4/4", 6, 6, *backend), doctest::Contains("power of two"), Unavailable);
  CHECK_NOTHROW(codecs("fp8/4", 6, 6, *backend));
}
