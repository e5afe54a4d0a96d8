// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>

#include <kvbench/methods/quantisation/lloyd_max.hpp>

#include "codecs.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::vector<Assignment> with_bits(int bits, bool qjl = false) {
  return {{"bits", std::to_string(bits)}, {"qjl", qjl ? "true" : "false"}};
}

}  // namespace

TEST_CASE("turboquant: squared errors of unit vectors are those of the paper") {
  // Section 3.1: 0.36, 0.117, 0.03 and 0.009 for 1 to 4 bits; with more digits those of a normal number (Max 1960).
  const std::vector<double> distortion = {0.3634, 0.1175, 0.03454, 0.009497};
  const Index d = 128, n = 300;
  const HeadPrompt head = head_of(d, d, 1, 1, cpu());
  std::vector<float> rows = random_numbers(d * n, 7, 1);
  std::fill(rows.begin(), rows.begin() + 20 * d, 0.0f);
  for (Index i = 0; i < 20; ++i) rows[static_cast<std::size_t>(i * d + i)] = 1;  // the rotation spreads these too
  for (int bits = 1; bits <= 4; ++bits) {
    Trials keys, values;
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
      const Codecs codecs = codecs_of("turboquant", with_bits(bits), head, seed, 0, cpu());
      const std::vector<float> key = decoded(*codecs.keys, rows, d, cpu());
      const std::vector<float> value = decoded(*codecs.values, rows, d, cpu());
      CHECK(key != value);
      for (Index i = 0; i < n; ++i) {
        const double norm = product(rows, rows, d, i);
        const auto error = [&](const std::vector<float>& out) {
          return (product(out, out, d, i) - 2 * product(out, rows, d, i) + norm) / norm;
        };
        keys.add(error(key)), values.add(error(value));
      }
    }
    const double expected = distortion[static_cast<std::size_t>(bits - 1)];
    CHECK(keys.mean() == doctest::Approx(expected).epsilon(0.02));
    CHECK(values.mean() == doctest::Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("turboquant: with the sketch of the residual inner products have no bias, without it they are too small") {
  const Index d = 8;
  const HeadPrompt head = head_of(d, d, 1, 1);
  const std::vector<float> key = random_numbers(d, 3, 1), query = random_numbers(d, 4, 1);
  for (const int bits : {2, 4}) {
    Trials same, other, plain;
    for (std::uint32_t seed = 0; seed < 3000; ++seed) {
      const std::vector<float> out = decoded(*codecs_of("turboquant", with_bits(bits, true), head, seed).keys, key, d);
      same.add(product(out, key, d)), other.add(product(out, query, d));
      plain.add(product(decoded(*codecs_of("turboquant", with_bits(bits), head, seed).keys, key, d), key, d));
    }
    // The norm of the residual is stored in f16, a relative error of at most 2^-11.
    CHECK(std::fabs(same.mean() - product(key, key, d)) < 4 * same.error() + 1e-3);
    CHECK(std::fabs(other.mean() - product(query, key, d)) < 4 * other.error() + 1e-3);
    CHECK(product(key, key, d) - plain.mean() > 4 * plain.error());
  }
}

TEST_CASE("turboquant: no error exceeds the bound of the banner, and zeros stay zeros") {
  const Index d = 16;
  const std::vector<float> rows = hostile_rows(d);
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    const HeadPrompt head = head_of(d, d, 1, 1, *backend);
    for (int bits = 1; bits <= 4; ++bits) {
      const std::vector<float> out =
          decoded(*codecs_of("turboquant", with_bits(bits), head, 0, 0, *backend).keys, rows, d, *backend);
      const auto& levels = sphere_codebook(d, bits)->levels;
      double half = 0;
      for (std::size_t i = 1; i < levels.size(); ++i) half = std::max(half, (levels[i] - levels[i - 1]) / 2.0);
      for (Index i = 0; i < static_cast<Index>(rows.size()) / d; ++i) {
        const double norm = std::sqrt(product(rows, rows, d, i));
        const double squared = product(out, out, d, i) - 2 * product(out, rows, d, i) + norm * norm;
        // f16 rounds norms by 2^-11, and those below 2^-24 to that or to 0.
        CHECK(std::sqrt(std::max(0.0, squared)) <= norm * (std::sqrt(1 + d * half * half) + 1e-3) + 1e-7);
      }
      CHECK(std::all_of(out.begin(), out.begin() + d, [](float x) { return x == 0; }));
    }
    const std::vector<float> sketched =
        decoded(*codecs_of("turboquant", with_bits(3, true), head, 0, 0, *backend).keys, rows, d, *backend);
    CHECK(std::ranges::all_of(sketched, [](float x) { return std::isfinite(x); }));
  }
}

TEST_CASE("turboquant: bytes, levels and what is refused") {
  const HeadPrompt head = head_of(64, 32, 1, 1);
  for (int bits = 1; bits <= 4; ++bits) {
    const Codecs codecs = codecs_of("turboquant", with_bits(bits), head, 0);
    CHECK(bytes_of(codecs.keys->footprint(10, 64)) == 10 * (bits * 64 / 8 + 2));
    CHECK(bytes_of(codecs.values->footprint(10, 32)) == 10 * (bits * 32 / 8 + 2));
  }
  const Codecs sketched = codecs_of("turboquant", with_bits(3, true), head, 0);
  CHECK(bytes_of(sketched.keys->footprint(10, 64)) == 10 * (3 * 64 / 8 + 2 + 2));
  CHECK(bytes_of(sketched.values->footprint(10, 32)) == 10 * (3 * 32 / 8 + 2));

  const MethodInfo& info = find_method("turboquant");
  CHECK(info.quantiser.levels(info.bind({})) == std::vector<std::string>{"1 bit", "2 bits", "3 bits", "4 bits"});
  const Params qjl = info.bind(std::vector<Assignment>{{"qjl", "true"}});
  CHECK(info.quantiser.levels(qjl).size() == 3);
  CHECK(bytes_of(codecs_of("turboquant", {{"qjl", "true"}}, head, 0, 0).keys->footprint(1, 64)) == 2 * 64 / 8 + 4);
  CHECK(bytes_of(codecs_of("turboquant", {}, head, 0, 3).keys->footprint(1, 64)) == 4 * 64 / 8 + 2);
  CHECK_THROWS_WITH_AS(info.bind(with_bits(1, true)), doctest::Contains("leaves none"), Error);
  CHECK_THROWS_WITH_AS(codecs_of("turboquant", {}, head_of(1, 4, 1, 1), 0), doctest::Contains("at least 2 channels"),
                       Unavailable);
}

namespace {

std::vector<Assignment> preset(const std::string& name) { return {{"preset", name}}; }
Codecs codecs(const std::string& name, Index d, Index dv, Backend& backend = ref()) {
  return codecs_of("turboquant@vllm", preset(name), head_of(d, dv, 1, 1, backend), 0, 0, backend);
}

}  // namespace

TEST_CASE("turboquant@vllm: a key by hand") {
  // The positive levels of d = 2 at 3 bits are 0.17323, 0.53432, 0.94977, 1.52053, with midpoints 0.35378, 0.74205,
  // 1.23515. k = (3, 1) has norm sqrt(10), in f16 3.1621094, and H k / |k| = (4, 2) / sqrt(20) = (0.89443, 0.44721):
  // levels 0.94977, 0.53432, whose norm is 1.08976. H (0.87154, 0.49031) 3.1621094 = (3.04505, 0.85241).
  const std::vector<float> out = decoded(*codecs("3/4", 2, 2).keys, {3, 1, 0, 0}, 2);
  CHECK(out[0] == doctest::Approx(3.04505).epsilon(1e-5));
  CHECK(out[1] == doctest::Approx(0.85241).epsilon(1e-5));
  CHECK(out[2] == 0);
  CHECK(out[3] == 0);
}

TEST_CASE("turboquant@vllm: values and fp8 keys by hand") {
  // Minimum 0, step 1: halves are rounded up.
  CHECK(decoded(*codecs("4/4", 4, 4).values, {0, 6.5, 15, 2.4f}, 4) == std::vector<float>{0, 7, 15, 2});
  CHECK(decoded(*codecs("3/3", 4, 4).values, {0, 2.5, 7, 2.4f}, 4) == std::vector<float>{0, 3, 7, 2});
  CHECK(decoded(*codecs("3/3", 4, 4).values, {3, 3, 3, 3}, 4) == std::vector<float>{3, 3, 3, 3});
  // From 256 on e4m3 has steps of 32, from 0.25 on of 1/32; its largest number is 448.
  CHECK(decoded(*codecs("fp8/4", 4, 4).keys, {300, -1000, 0.3f, 0}, 4) == std::vector<float>{288, -448, 0.3125, 0});
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
  const auto whole = [&](Index layer, Index layers) {
    const Codecs both = codecs_of("turboquant@vllm", {}, head_of(8, 8, layer, layers), 0);
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
  const auto key_bytes = [&](const char* name) { return bytes_of(codecs(name, 64, 32).keys->footprint(10, 64)); };
  const auto value_bytes = [&](const char* name) { return bytes_of(codecs(name, 64, 32).values->footprint(10, 32)); };
  CHECK(key_bytes("4/4") == 10 * (32 + 2));
  CHECK(key_bytes("3/4") == 10 * (24 + 2));
  CHECK(key_bytes("fp8/4") == 10 * 64);
  CHECK(value_bytes("4/4") == 10 * (16 + 4));
  CHECK(value_bytes("3/3") == 10 * (12 + 4));
  CHECK_THROWS_WITH_AS(codecs("4/4", 6, 6), doctest::Contains("power of two"), Unavailable);
  CHECK_NOTHROW(codecs("fp8/4", 6, 6));
}
