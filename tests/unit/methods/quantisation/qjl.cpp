// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "codecs.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::vector<Assignment> small(int outliers) {
  return {{"sketch", "40"},
          {"initial_layers", "0"},
          {"outliers", std::to_string(outliers)},
          {"group", "4"},
          {"residual", "8"}};
}

}  // namespace

TEST_CASE("qjl: keys are encoded once R wait, before that step's queries; of values the last R wait") {
  const auto backend = make_ref_backend();
  const Codecs both = codecs_of("qjl", {}, head_of(16, 16, 20, 30, *backend), 0, *backend);
  for (const auto& [held, expected] : {std::pair<Index, Index>{127, 0}, {128, 128}, {255, 128}, {256, 256}}) {
    CHECK(both.keys->encoded(held, held) == expected);  // all of it a prompt
    CHECK(both.keys->encoded(100, held) == expected);   // with decoded tokens
  }
  CHECK(both.values->encoded(300, 300) == 172);
  CHECK(both.values->encoded(300, 301) == 172);
}

TEST_CASE("qjl: bytes of keys and values, and what is refused") {
  const auto backend = make_ref_backend();
  const auto codecs = [&](Index layer) {
    return codecs_of("qjl", {}, head_of(64, 64, layer, 30, *backend), 0, *backend);
  };
  // Signs, outlier signs, two norms; 8 channels for each 32 keys.
  CHECK(bytes(*codecs(15).keys, 256, 64) == 256 * (32 + 16 + 4) + 256 / 32 * 8);
  CHECK(bytes(*codecs(14).keys, 256, 64) == 256 * (64 + 32 + 4) + 256 / 32 * 8);
  // 2 bits a number; scale and minimum in f16 for each 32 channels.
  CHECK(bytes(*codecs(15).values, 256, 64) == 256 * (16 + 2 * 4));
  CHECK_THROWS_WITH_AS(codecs_of("qjl", {}, head_of(258, 4, 1, 30, *backend), 0, *backend),
                       doctest::Contains("in a byte"), Unavailable);
  const MethodInfo& info = find_method("qjl");
  CHECK_THROWS_AS(info.bind(std::vector<Assignment>{{"residual", "100"}}), Error);
  CHECK_THROWS_AS(info.bind(std::vector<Assignment>{{"sketch", "33"}}), Error);
}

TEST_CASE("qjl: the mean of inner products over seeds is exact but for the factor of orthogonal directions") {
  const auto backend = make_ref_backend();
  const Index d = 6, n = 8;
  const HeadPrompt head = head_of(d, d, 20, 30, *backend);
  std::vector<float> keys = random_numbers(d * n, 11, 1);
  for (Index i = 0; i < n; ++i) keys[static_cast<std::size_t>(i * d + (i < 4 ? 2 : 5))] *= 10;  // outliers by group
  const std::vector<float> queries = random_numbers(d * n, 12, 1);
  std::vector<Trials> trials(static_cast<std::size_t>(n));
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const std::vector<float> out = decoded(*codecs_of("qjl", small(2), head, seed, *backend).keys, keys, d, *backend);
    for (Index i = 0; i < n; ++i) trials[static_cast<std::size_t>(i)].add(product(queries, out, d, i));
  }
  for (Index i = 0; i < n; ++i) {
    const Trials& t = trials[static_cast<std::size_t>(i)];
    const double exact = product(queries, keys, d, i), size = std::sqrt(product(keys, keys, d, i));
    CHECK(std::fabs(t.mean() - sphere_factor(d) * exact) < 4 * t.error() + 2e-3 * size);  // norms are in f16
  }
}

TEST_CASE("qjl: outlier channels do not disturb the others") {
  const auto backend = make_ref_backend();
  const Index d = 6, n = 8;
  const HeadPrompt head = head_of(d, d, 20, 30, *backend);
  std::vector<float> keys = random_numbers(d * n, 13, 1);
  for (Index i = 0; i < n; ++i) keys[static_cast<std::size_t>(i * d + 1)] = i % 2 == 0 ? 1000 : -1000;
  const auto worst = [&](int outliers) {
    double largest = 0;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> out =
          decoded(*codecs_of("qjl", small(outliers), head, seed, *backend).keys, keys, d, *backend);
      for (std::size_t i = 0; i < out.size(); ++i)
        if (i % 6 != 1) largest = std::max(largest, static_cast<double>(std::fabs(out[i] - keys[i])));
    }
    return largest;
  };
  // One outlier channel holds all of the large part. The norm of the rest is taken from |k|^2 - |o|^2 in f16: it may be
  // lost, but cannot exceed sqrt(2 * 1000^2 * 2^-10) = 44 by more than it is, times sqrt(6 pi / 2) = 3.1. Where all d
  // channels are outliers, the large one disturbs the others.
  CHECK(worst(1) < 140);
  CHECK(worst(6) > 140);
}

TEST_CASE("qjl: zeros stay zeros, and hostile rows stay finite") {
  const Index d = 16;
  std::vector<float> rows = hostile_rows(d);
  rows.resize(static_cast<std::size_t>(8 * d));
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    const Codecs both = codecs_of("qjl", small(2), head_of(d, d, 20, 30, *backend), 0, *backend);
    const std::vector<float> out = decoded(*both.keys, rows, d, *backend);
    CHECK(std::all_of(out.begin(), out.begin() + d, [](float x) { return x == 0; }));
    for (Index i = 0; i < 8; ++i) {
      const double norm = std::sqrt(product(rows, rows, d, i));
      // Each direction has norm sqrt(d), so that the two parts are at most sqrt(d pi / 2) times |i| and |o|.
      CHECK(std::sqrt(product(out, out, d, i)) <= std::sqrt(d * 3.1416 / 2) * norm * 1.002 + 1e-6);
    }
  }
}
