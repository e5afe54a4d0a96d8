// SPDX-License-Identifier: Apache-2.0
// The least-squares problems of attention matching (arXiv 2602.16284), in fp64 on the host: which weights and values of
// kept tokens give reference queries the sums that all tokens give.
#pragma once

#include <span>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

/// X [cols, k] of the least |A X - Y|, of several the shortest: A [rows, cols], Y [rows, k], all row-major. By Cholesky
/// of the smaller of A^T A and A A^T plus 1e-10 of its mean diagonal: directions of A below 1e-5 of that size count as
/// none, as they nearly do in fp32.
std::vector<double> least_squares(std::span<const double> a, Index rows, Index cols, std::span<const double> y,
                                  Index k = 1);

struct WeightBounds {
  double low = 0, high = 0;
};
/// w of a small |A w - y| with low <= w <= high, A [rows, cols]: clamped least squares, and then `steps` steps of
/// projected gradient descent of size 1 / sigma^2, sigma being the largest singular value after 3 power iterations
/// from equal components.
std::vector<double> bounded_least_squares(std::span<const double> a, Index rows, Index cols, std::span<const double> y,
                                          WeightBounds bounds, int steps);

/// Columns that are added one by one, and the w of the least |A w - y| for those so far: O(rows * columns + columns^2)
/// for each.
class GrowingFit {
 public:
  /// y [rows], at most `capacity` columns of numbers in [0, 1].
  GrowingFit(std::span<const double> y, Index capacity);
  void add(std::span<const float> column);
  void clear() { count_ = 0; }
  std::vector<double> weights() const;
  /// y - A w [rows]
  std::vector<float> residual(std::span<const double> w) const;

 private:
  Index rows_, capacity_, count_ = 0;
  std::vector<double> y_, columns_;  ///< [rows], [capacity, rows]
  std::vector<double> factor_;       ///< [capacity, capacity] lower triangle L of A^T A + ridge = L L^T
  std::vector<double> solved_;       ///< [capacity] L^-1 A^T y
};

}  // namespace kvbench::methods
