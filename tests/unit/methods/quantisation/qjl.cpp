// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numbers>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/methods/quantisation/sign_sketch.hpp>
#include <kvbench/methods/stages/draws.hpp>

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
  const Codecs both = codecs_of("qjl", {}, head_of(16, 16, 20, 30), 0);
  for (const auto& [held, expected] : {std::pair<Index, Index>{127, 0}, {128, 128}, {255, 128}, {256, 256}}) {
    CHECK(both.keys->encoded(held, held) == expected);  // all of it a prompt
    CHECK(both.keys->encoded(100, held) == expected);   // with decoded tokens
  }
  CHECK(both.values->encoded(300, 300) == 172);
  CHECK(both.values->encoded(300, 301) == 172);
}

TEST_CASE("qjl: bytes of keys and values, and what is refused") {
  const auto codecs = [&](Index layer) { return codecs_of("qjl", {}, head_of(64, 64, layer, 30), 0); };
  // Signs, outlier signs, two norms; 8 channels for each 32 keys.
  CHECK(bytes_of(codecs(15).keys->footprint(256, 64)) == 256 * (32 + 16 + 4) + 256 / 32 * 8);
  CHECK(bytes_of(codecs(14).keys->footprint(256, 64)) == 256 * (64 + 32 + 4) + 256 / 32 * 8);
  // 2 bits a number; scale and minimum in f16 for each 32 channels.
  CHECK(bytes_of(codecs(15).values->footprint(256, 64)) == 256 * (16 + 2 * 4));
  CHECK_THROWS_WITH_AS(codecs_of("qjl", {}, head_of(258, 4, 1, 30), 0), doctest::Contains("in a byte"), Unavailable);
  const MethodInfo& info = find_method("qjl");
  CHECK_THROWS_AS(info.bind(std::vector<Assignment>{{"residual", "100"}}), Error);
  CHECK_THROWS_AS(info.bind(std::vector<Assignment>{{"sketch", "33"}}), Error);
}

TEST_CASE("qjl: the mean of inner products over seeds is exact but for the factor of orthogonal directions") {
  const Index d = 6, n = 8;
  const HeadPrompt head = head_of(d, d, 20, 30);
  std::vector<float> keys = random_numbers(d * n, 11, 1);
  for (Index i = 0; i < n; ++i) keys[static_cast<std::size_t>(i * d + (i < 4 ? 2 : 5))] *= 10;  // outliers by group
  const std::vector<float> queries = random_numbers(d * n, 12, 1);
  std::vector<Trials> trials(static_cast<std::size_t>(n));
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const std::vector<float> out = decoded(*codecs_of("qjl", small(2), head, seed).keys, keys, d);
    for (Index i = 0; i < n; ++i) trials[static_cast<std::size_t>(i)].add(product(queries, out, d, i));
  }
  for (Index i = 0; i < n; ++i) {
    const Trials& t = trials[static_cast<std::size_t>(i)];
    const double exact = product(queries, keys, d, i), size = std::sqrt(product(keys, keys, d, i));
    CHECK(std::fabs(t.mean() - sphere_factor(d) * exact) < 4 * t.error() + 2e-3 * size);  // norms are in f16
  }
}

TEST_CASE("qjl: outlier channels do not disturb the others") {
  const Index d = 6, n = 8;
  const HeadPrompt head = head_of(d, d, 20, 30);
  std::vector<float> keys = random_numbers(d * n, 13, 1);
  for (Index i = 0; i < n; ++i) keys[static_cast<std::size_t>(i * d + 1)] = i % 2 == 0 ? 1000 : -1000;
  const auto worst = [&](int outliers) {
    double largest = 0;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> out = decoded(*codecs_of("qjl", small(outliers), head, seed).keys, keys, d);
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
    const Codecs both = codecs_of("qjl", small(2), head_of(d, d, 20, 30, *backend), 0, 0, *backend);
    const std::vector<float> out = decoded(*both.keys, rows, d, *backend);
    CHECK(std::all_of(out.begin(), out.begin() + d, [](float x) { return x == 0; }));
    for (Index i = 0; i < 8; ++i) {
      const double norm = std::sqrt(product(rows, rows, d, i));
      // Each direction has norm sqrt(d), so that the two parts are at most sqrt(d pi / 2) times |i| and |o|.
      CHECK(std::sqrt(product(out, out, d, i)) <= std::sqrt(d * 3.1416 / 2) * norm * 1.002 + 1e-6);
    }
  }
}

namespace {

Draws draws_of(std::uint32_t seed) { return Draws(seed, "test", HeadPrompt{}); }

/// The mean over seeds of <q, estimate of x> with m directions, orthogonal or independent.
Trials estimates(const std::vector<float>& q, const std::vector<float>& x, Index m, bool orthogonal) {
  const auto d = static_cast<Index>(x.size());
  const Buffer<const float> row = ref().adopt(x, 1, d);
  const RowNorms norms = norms_of(row, ref());
  Trials trials;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    const MatrixPair sketch = orthogonal ? matrix_pair(orthonormal_matrix(draws_of(seed), 0, m, d), m, d,
                                                       std::sqrt(static_cast<double>(d)), ref())
                                         : matrix_pair(gaussian_matrix(draws_of(seed), 0, m, d), m, d, 1, ref());
    trials.add(product(q, ref().read(sign_estimates(row, norms.exact, sketch, ref())), d));
  }
  return trials;
}

}  // namespace

TEST_CASE("blocks of a random matrix are orthonormal, and matrices of other parts, seeds and rows differ") {
  const Index d = 6, rows = 15;
  const std::vector<double> matrix = orthonormal_matrix(draws_of(1), 0, rows, d);
  for (Index i = 0; i < rows; ++i)
    for (Index j = i / d * d; j <= i; ++j) {
      double sum = 0;
      for (Index c = 0; c < d; ++c)
        sum += matrix[static_cast<std::size_t>(i * d + c)] * matrix[static_cast<std::size_t>(j * d + c)];
      CHECK(std::fabs(sum - (i == j ? 1 : 0)) < 1e-14);
    }
  CHECK(gaussian_matrix(draws_of(1), 0, 2, 3) != gaussian_matrix(draws_of(1), 1, 2, 3));
  CHECK(gaussian_matrix(draws_of(1), 0, 2, 3) != gaussian_matrix(draws_of(2), 0, 2, 3));
  const std::vector<double> long_rows = gaussian_matrix(draws_of(1), 0, 2, 200);
  CHECK(std::set<double>(long_rows.begin(), long_rows.end()).size() == 400);
}

TEST_CASE("normal numbers have mean 0, variance 1 and fourth moment 3") {
  Trials first, second, fourth;
  for (const double x : gaussian_matrix(draws_of(5), 0, 400, 101))
    first.add(x), second.add(x * x), fourth.add(x * x * x * x);
  CHECK(std::fabs(first.mean()) < 4 * first.error());
  CHECK(std::fabs(second.mean() - 1) < 4 * second.error());
  CHECK(std::fabs(fourth.mean() - 3) < 4 * fourth.error());
}

TEST_CASE("a row is estimated from its signs and its norm") {
  const MatrixPair sketch = matrix_pair({1, 2, 2, -1}, 2, 2, 1, ref());
  // S (3, -1) = (1, 7): signs +, +; S^T (1, 1) = (3, 1). S (2, -1) = (0, 5): signs -, +; S^T (-1, 1) = (1, -3).
  // S (0, 0) = 0, and its norm is 0. Times sqrt(pi / 2) / 2 and the norm that is given: 2, 4 and 0.
  const Buffer<const float> rows = ref().adopt<float>({3, -1, 2, -1, 0, 0}, 3, 2);
  const Buffer<const float> norms = ref().adopt<float>({2, 4, 0}, 3);
  const std::vector<float> out = ref().read(sign_estimates(rows, norms, sketch, ref()));
  const double unit = std::sqrt(std::numbers::pi / 2) / 2;
  const std::vector<double> expected = {2 * 3 * unit, 2 * 1 * unit, 4 * 1 * unit, 4 * -3 * unit, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("differences and masks are exact") {
  const Buffer<const float> a = ref().adopt<float>({1, 1e8f, -3, 0.1f}, 2, 2);
  const Buffer<const float> b = ref().adopt<float>({4, 1, -3, 1e-30f}, 2, 2);
  CHECK(ref().read(difference(a, b, ref())) == std::vector<float>{-3, 1e8f - 1, 0, 0.1f - 1e-30f});
  const Buffer<const std::uint8_t> mask = ref().adopt<std::uint8_t>({1, 0, 0, 1}, 2, 2);
  CHECK(ref().read(combined(mask, 0, a, {}, ref())) == std::vector<float>{1, 0, 0, 0.1f});
}

TEST_CASE("the mean of the estimate is the inner product, with orthogonal directions times a known factor") {
  const Index d = 8;
  const std::vector<float> x = random_numbers(d, 1, 1), other = random_numbers(d, 2, 1);
  for (const std::vector<float>& q : {x, other}) {
    const double exact = product(q, x, d);
    const Trials independent = estimates(q, x, d, false);
    CHECK(std::fabs(independent.mean() - exact) < 4 * independent.error());
    const Trials orthogonal = estimates(q, x, 12, true);  // the second block is not whole
    CHECK(std::fabs(orthogonal.mean() - sphere_factor(d) * exact) < 4 * orthogonal.error());
  }
  // The factor is seen: without it the test above would fail where q = x.
  const Trials orthogonal = estimates(x, x, 12, true);
  CHECK(orthogonal.mean() - product(x, x, d) > 4 * orthogonal.error());
}
