// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/draws.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <kvbench/kernels/normal.hpp>

namespace kvbench::methods {

std::vector<TokenId> random_tokens(const Draws& draws, Index tokens, Index count) {
  std::vector<std::pair<double, TokenId>> drawn;
  for (Index i = 0; i < tokens; ++i) drawn.emplace_back(draws.uniform(i), static_cast<TokenId>(i));
  std::ranges::sort(drawn);
  drawn.resize(static_cast<std::size_t>(std::min(count, tokens)));
  std::vector<TokenId> kept;
  for (const auto& [draw, token] : drawn) kept.push_back(token);
  std::ranges::sort(kept);
  return kept;
}

namespace {

double product(const double* a, const double* b, Index count) {
  double sum = 0;
  for (Index c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

std::vector<double> gaussian_matrix(const Draws& draws, std::uint32_t part, Index rows, Index cols) {
  std::vector<double> out;
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < cols; c += 2) {
      const auto two = normal_pair(draws.block(i, part << 16 | static_cast<std::uint32_t>(c / 2)));
      out.push_back(two[0]);
      if (c + 1 < cols) out.push_back(two[1]);
    }
  return out;
}

std::vector<double> orthonormal_matrix(const Draws& draws, std::uint32_t part, Index rows, Index cols) {
  std::vector<double> out = gaussian_matrix(draws, part, rows, cols);
  const auto row = [&](Index i) { return out.data() + i * cols; };
  for (Index i = 0; i < rows; ++i) {
    // The second round removes what rounding left in the first.
    for (int round = 0; round < 2; ++round)
      for (Index j = i / cols * cols; j < i; ++j) {
        const double along = product(row(i), row(j), cols);
        for (Index c = 0; c < cols; ++c) row(i)[c] -= along * row(j)[c];
      }
    const double norm = std::sqrt(product(row(i), row(i), cols));
    for (Index c = 0; c < cols; ++c) row(i)[c] /= norm;
  }
  return out;
}

MatrixPair matrix_pair(const std::vector<double>& matrix, Index rows, Index cols, double factor, Backend& backend) {
  std::vector<float> plain, transposed(matrix.size());
  for (const double x : matrix) plain.push_back(static_cast<float>(factor * x));
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < cols; ++c)
      transposed[static_cast<std::size_t>(c * rows + i)] = plain[static_cast<std::size_t>(i * cols + c)];
  return {backend.adopt(std::move(plain), rows, cols), backend.adopt(std::move(transposed), cols, rows)};
}

}  // namespace kvbench::methods
