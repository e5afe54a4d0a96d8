// SPDX-License-Identifier: Apache-2.0
// Random matrices that a deployment draws again from its seed instead of storing them.
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

/// [rows, cols] independent numbers of N(0, 1), by Box and Muller. Matrices of different parts are independent.
std::vector<double> gaussian_matrix(const Draws& draws, std::uint32_t part, Index rows, Index cols);

/// [rows, cols]: gaussian_matrix() with each block of `cols` consecutive rows made orthonormal, in their order, by Gram
/// and Schmidt. A whole block is a uniformly random orthogonal matrix.
std::vector<double> orthonormal_matrix(const Draws& draws, std::uint32_t part, Index rows, Index cols);

/// A [rows, cols] matrix for ProjectRows, and its transpose [cols, rows].
struct MatrixPair {
  Buffer<const float> matrix, transpose;
};
MatrixPair matrix_pair(const std::vector<double>& matrix, Index rows, Index cols, double factor, Backend& backend);

}  // namespace kvbench::methods
