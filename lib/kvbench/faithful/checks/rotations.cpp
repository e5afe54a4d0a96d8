// SPDX-License-Identifier: Apache-2.0
// The rotations of the quantisers keep inner products within the rounding of fp32. docs/theory/rotation.products.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <cmath>

#include <fmt/format.h>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/kernels/codes.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {
namespace {

constexpr Index turned_rows = 48;  // keys; every pair is a case
constexpr Index rotations = 4;     // seeds
constexpr double rounding_unit = 0x1p-24;
constexpr double subnormal = 0x1p-149;  // the distance of fp32 numbers near 0

Index hadamard_block(Index d) { return d & -d; }

struct ProductErrors {
  std::int64_t cases = 0, exceptions = 0;
  double largest = 0;  ///< of an error divided by its bound
};

/// <R x, R y> against <x, y> of all pairs of rows, each of them with itself too.
void add_products(ProductErrors& errors, const std::vector<float>& rows, const std::vector<float>& turned, Index d,
                  double rounding) {
  const Index n = static_cast<Index>(rows.size()) / d;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j <= i; ++j) {
      const auto x = row_of(rows, d, i), y = row_of(rows, d, j);
      const double x2 = bounds::squared_norm(x), y2 = bounds::squared_norm(y);
      const double tiny = std::sqrt(static_cast<double>(d)) * subnormal;
      const double of_x = rounding * std::sqrt(x2) + tiny, of_y = rounding * std::sqrt(y2) + tiny;
      const double bound = of_x * std::sqrt(y2) + of_y * std::sqrt(x2) + of_x * of_y;
      const double error = std::abs(bounds::dot(row_of(turned, d, i), row_of(turned, d, j)) - bounds::dot(x, y));
      ++errors.cases;
      errors.exceptions += !(error <= bound);
      errors.largest = std::max(errors.largest, std::isnan(error) ? INFINITY : error / bound);
    }
}

void run_rotation_products(bounds::CheckContext& context) {
  check_rotation(context, hadamard_rotation(*context.subject, context.backend));
  check_rotation(context, random_rotation(*context.subject, context.backend));
}

}  // namespace

Rotation hadamard_rotation(const bounds::Subject& subject, Backend& backend) {
  const Index d = subject.d(), block = hadamard_block(d);
  // A sum or difference in each of log2(block) stages, the factor, and the product with it.
  const double stages = std::log2(static_cast<double>(block));
  return {.name = "Hadamard",
          .rounding = 1.01 * (stages + 2) * rounding_unit,
          .turned = [&backend, d, block](const std::vector<float>& keys, std::uint32_t) {
            const Index n = static_cast<Index>(keys.size()) / d;
            const auto out = backend.allocate<float>(n, d);
            backend.run(kernels::HadamardRows<Buffer>{.rows = backend.adopt(keys, n, d), .block = block, .out = out});
            return backend.read(out);
          }};
}

Rotation random_rotation(const bounds::Subject& subject, Backend& backend) {
  const Index d = subject.d();
  // The matrix, whose Frobenius norm is sqrt(d), and the result are rounded once each.
  return {.name = "random",
          .rounding = 1.01 * (std::sqrt(static_cast<double>(d)) + 1) * rounding_unit,
          .turned = [&subject, &backend, d](const std::vector<float>& keys, std::uint32_t seed) {
            const methods::Draws draws(seed, "turboquant", subject.head);
            const methods::MatrixPair matrix =
                methods::matrix_pair(methods::orthonormal_matrix(draws, 0, d, d), d, d, 1, backend);
            const Index n = static_cast<Index>(keys.size()) / d;
            return backend.read(methods::projected(backend.adopt(keys, n, d), matrix.matrix, backend));
          }};
}

void check_rotation(bounds::CheckContext& context, const Rotation& rotation) {
  const bounds::Subject& subject = *context.subject;
  std::vector<float> rows = ordinary_keys(subject, turned_rows);
  rows.insert(rows.end(), subject.queries.begin(), subject.queries.end());
  ProductErrors errors;
  const Index seeds = std::min(rotations, context.options.seeds);
  for (Index trial = 0; trial < seeds; ++trial) {
    context.poll();
    add_products(errors, rows, rotation.turned(rows, context.seed(trial)), subject.d(), rotation.rounding);
  }
  context.exact({"<R x, R y> = <x, y>, " + rotation.name, fmt::format("d={}", subject.d())}, errors.exceptions,
                errors.cases,
                fmt::format("errors of {} pairs of keys and queries are at most {:.2g} of the rounding bound",
                            errors.cases, errors.largest),
                {.measured = errors.largest, .bound = 1});
}

bounds::Check rotation_products() {
  return {.id = "rotation.products",
          .paper = "kvbench: what TurboQuant (arXiv 2504.19874) and llama.cpp (#21038) rotate keys for",
          .statement = "rotations keep inner products within the rounding of fp32",
          .method = "turboquant",
          .run = run_rotation_products};
}

}  // namespace kvbench::faithful
