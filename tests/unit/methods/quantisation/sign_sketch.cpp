// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numbers>
#include <set>

#include <kvbench/methods/quantisation/sign_sketch.hpp>
#include <kvbench/methods/stages/random_matrix.hpp>

#include "codecs.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Draws draws_of(std::uint32_t seed) { return Draws(seed, "test", HeadPrompt{}); }

/// The mean over seeds of <q, estimate of x> with m directions, orthogonal or independent.
Trials estimates(const std::vector<float>& q, const std::vector<float>& x, Index m, bool orthogonal, Backend& backend) {
  const auto d = static_cast<Index>(x.size());
  const Buffer<const float> row = backend.adopt(x, 1, d);
  const RowNorms norms = norms_of(row, backend);
  Trials trials;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    const MatrixPair sketch = orthogonal ? matrix_pair(orthonormal_matrix(draws_of(seed), 0, m, d), m, d,
                                                       std::sqrt(static_cast<double>(d)), backend)
                                         : matrix_pair(gaussian_matrix(draws_of(seed), 0, m, d), m, d, 1, backend);
    trials.add(product(q, backend.read(sign_estimates(row, norms.exact, sketch, backend)), d));
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
  const auto backend = make_ref_backend();
  const MatrixPair sketch = matrix_pair({1, 2, 2, -1}, 2, 2, 1, *backend);
  // S (3, -1) = (1, 7): signs +, +; S^T (1, 1) = (3, 1). S (2, -1) = (0, 5): signs -, +; S^T (-1, 1) = (1, -3).
  // S (0, 0) = 0, and its norm is 0. Times sqrt(pi / 2) / 2 and the norm that is given: 2, 4 and 0.
  const Buffer<const float> rows = backend->adopt<float>({3, -1, 2, -1, 0, 0}, 3, 2);
  const Buffer<const float> norms = backend->adopt<float>({2, 4, 0}, 3);
  const std::vector<float> out = backend->read(sign_estimates(rows, norms, sketch, *backend));
  const double unit = std::sqrt(std::numbers::pi / 2) / 2;
  const std::vector<double> expected = {2 * 3 * unit, 2 * 1 * unit, 4 * 1 * unit, 4 * -3 * unit, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("differences and masks are exact") {
  const auto backend = make_ref_backend();
  const Buffer<const float> a = backend->adopt<float>({1, 1e8f, -3, 0.1f}, 2, 2);
  const Buffer<const float> b = backend->adopt<float>({4, 1, -3, 1e-30f}, 2, 2);
  CHECK(backend->read(difference(a, b, *backend)) == std::vector<float>{-3, 1e8f - 1, 0, 0.1f - 1e-30f});
  const Buffer<const std::uint8_t> mask = backend->adopt<std::uint8_t>({1, 0, 0, 1}, 2, 2);
  CHECK(backend->read(combined(mask, 0, a, {}, *backend)) == std::vector<float>{1, 0, 0, 0.1f});
}

TEST_CASE("the mean of the estimate is the inner product, with orthogonal directions times a known factor") {
  const auto backend = make_ref_backend();
  const Index d = 8;
  const std::vector<float> x = random_numbers(d, 1, 1), other = random_numbers(d, 2, 1);
  for (const std::vector<float>& q : {x, other}) {
    const double exact = product(q, x, d);
    const Trials independent = estimates(q, x, d, false, *backend);
    CHECK(std::fabs(independent.mean() - exact) < 4 * independent.error());
    const Trials orthogonal = estimates(q, x, 12, true, *backend);  // the second block is not whole
    CHECK(std::fabs(orthogonal.mean() - sphere_factor(d) * exact) < 4 * orthogonal.error());
  }
  // The factor is seen: without it the test above would fail where q = x.
  const Trials orthogonal = estimates(x, x, 12, true, *backend);
  CHECK(orthogonal.mean() - product(x, x, d) > 4 * orthogonal.error());
}
