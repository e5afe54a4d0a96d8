// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

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
  const auto backend = make_cpu_backend();
  const Index d = 128, n = 300;
  const HeadPrompt head = head_of(d, d, 1, 1, *backend);
  std::vector<float> rows = random_numbers(d * n, 7, 1);
  std::fill(rows.begin(), rows.begin() + 20 * d, 0.0f);
  for (Index i = 0; i < 20; ++i) rows[static_cast<std::size_t>(i * d + i)] = 1;  // the rotation spreads these too
  for (int bits = 1; bits <= 4; ++bits) {
    Trials keys, values;
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
      const Codecs codecs = codecs_of("turboquant", with_bits(bits), head, seed, *backend);
      const std::vector<float> key = decoded(*codecs.keys, rows, d, *backend);
      const std::vector<float> value = decoded(*codecs.values, rows, d, *backend);
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
  const auto backend = make_ref_backend();
  const Index d = 8;
  const HeadPrompt head = head_of(d, d, 1, 1, *backend);
  const std::vector<float> key = random_numbers(d, 3, 1), query = random_numbers(d, 4, 1);
  for (const int bits : {2, 4}) {
    Trials same, other, plain;
    for (std::uint32_t seed = 0; seed < 3000; ++seed) {
      const std::vector<float> out =
          decoded(*codecs_of("turboquant", with_bits(bits, true), head, seed, *backend).keys, key, d, *backend);
      same.add(product(out, key, d)), other.add(product(out, query, d));
      plain.add(product(decoded(*codecs_of("turboquant", with_bits(bits), head, seed, *backend).keys, key, d, *backend),
                        key, d));
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
          decoded(*codecs_of("turboquant", with_bits(bits), head, 0, *backend).keys, rows, d, *backend);
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
        decoded(*codecs_of("turboquant", with_bits(3, true), head, 0, *backend).keys, rows, d, *backend);
    CHECK(std::ranges::all_of(sketched, [](float x) { return std::isfinite(x); }));
  }
}

TEST_CASE("turboquant: bytes, levels and what is refused") {
  const auto backend = make_ref_backend();
  const HeadPrompt head = head_of(64, 32, 1, 1, *backend);
  for (int bits = 1; bits <= 4; ++bits) {
    const Codecs codecs = codecs_of("turboquant", with_bits(bits), head, 0, *backend);
    CHECK(bytes(*codecs.keys, 10, 64) == 10 * (bits * 64 / 8 + 2));
    CHECK(bytes(*codecs.values, 10, 32) == 10 * (bits * 32 / 8 + 2));
  }
  const Codecs sketched = codecs_of("turboquant", with_bits(3, true), head, 0, *backend);
  CHECK(bytes(*sketched.keys, 10, 64) == 10 * (3 * 64 / 8 + 2 + 2));
  CHECK(bytes(*sketched.values, 10, 32) == 10 * (3 * 32 / 8 + 2));

  const MethodInfo& info = find_method("turboquant");
  CHECK(info.quantiser.levels(info.bind({})) == std::vector<std::string>{"1 bit", "2 bits", "3 bits", "4 bits"});
  const Params qjl = info.bind(std::vector<Assignment>{{"qjl", "true"}});
  CHECK(info.quantiser.levels(qjl).size() == 3);
  CHECK(bytes(*codecs_of("turboquant", {{"qjl", "true"}}, head, 0, *backend, 0).keys, 1, 64) == 2 * 64 / 8 + 4);
  CHECK(bytes(*codecs_of("turboquant", {}, head, 0, *backend, 3).keys, 1, 64) == 4 * 64 / 8 + 2);
  CHECK_THROWS_WITH_AS(info.bind(with_bits(1, true)), doctest::Contains("leaves none"), Error);
  CHECK_THROWS_WITH_AS(codecs_of("turboquant", {}, head_of(1, 4, 1, 1, *backend), 0, *backend),
                       doctest::Contains("at least 2 channels"), Unavailable);
}

TEST_CASE("turboquant: each seed has a rotation of its own, which is the same on every back end and at every call") {
  const auto ref = make_ref_backend(), cpu = make_cpu_backend();
  const HeadPrompt head = head_of(16, 16, 1, 1, *ref);
  const std::vector<float> row = random_numbers(16, 5, 1);
  const auto key = [&](std::uint32_t seed, Backend& backend) {
    return decoded(*codecs_of("turboquant", with_bits(3, true), head, seed, backend).keys, row, 16, backend);
  };
  CHECK(key(1, *ref) == key(1, *ref));
  CHECK(key(1, *ref) == key(1, *cpu));
  CHECK(key(1, *ref) != key(2, *ref));
}
