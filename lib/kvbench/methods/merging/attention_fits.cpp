// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/attention_fits.hpp>

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

namespace kvbench::methods {
namespace {

constexpr double ridge_share = 1e-10;

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

Eigen::Map<const Rows> matrix(std::span<const double> a, Index rows, Index cols) { return {a.data(), rows, cols}; }
Eigen::Map<const Vector> vector(std::span<const double> a) { return {a.data(), std::ssize(a)}; }

/// The inverse of gram + ridge, applied to `right`. A matrix of zeros has the solution 0.
Rows solve(Eigen::MatrixXd gram, const Rows& right) {
  const double mean = gram.trace() / static_cast<double>(gram.rows());
  if (!(mean > 0)) return Rows::Zero(gram.rows(), right.cols());
  gram.diagonal().array() += ridge_share * mean;
  return gram.llt().solve(right);
}

void clamp(Vector& w, WeightBounds bounds) { w = w.cwiseMax(bounds.low).cwiseMin(bounds.high); }

double largest_square(const Eigen::Map<const Rows>& a) {
  Vector u = Vector::Constant(a.cols(), 1 / std::sqrt(static_cast<double>(a.cols())));
  for (int i = 0; i < 3; ++i) {
    const Vector next = a.transpose() * (a * u);
    if (next.norm() == 0) break;
    u = next.normalized();
  }
  return std::max((a * u).squaredNorm(), 1e-6);
}

}  // namespace

std::vector<double> least_squares(std::span<const double> a, Index rows, Index cols, std::span<const double> y,
                                  Index k) {
  const auto m = matrix(a, rows, cols);
  const auto right = matrix(y, rows, k);
  const Rows x = cols <= rows ? solve(m.transpose() * m, m.transpose() * right)
                              : Rows(m.transpose() * solve(m * m.transpose(), right));
  return {x.data(), x.data() + x.size()};
}

std::vector<double> bounded_least_squares(std::span<const double> a, Index rows, Index cols, std::span<const double> y,
                                          WeightBounds bounds, int steps) {
  const auto m = matrix(a, rows, cols);
  const std::vector<double> start = least_squares(a, rows, cols, y);
  Vector w = vector(start);
  clamp(w, bounds);
  const double step = steps > 0 ? 1 / largest_square(m) : 0;
  for (int i = 0; i < steps; ++i) {
    w -= step * (m.transpose() * (m * w - vector(y)));
    clamp(w, bounds);
  }
  return {w.begin(), w.end()};
}

GrowingFit::GrowingFit(std::span<const double> y, Index capacity)
    : rows_(std::ssize(y)),
      capacity_(capacity),
      y_(y.begin(), y.end()),
      columns_(static_cast<std::size_t>(capacity * rows_)),
      factor_(static_cast<std::size_t>(capacity * capacity)),
      solved_(static_cast<std::size_t>(capacity)) {}

void GrowingFit::add(std::span<const float> column) {
  Eigen::Map<Rows> columns(columns_.data(), capacity_, rows_), factor(factor_.data(), capacity_, capacity_);
  Eigen::Map<Vector> solved(solved_.data(), capacity_);
  columns.row(count_) = Eigen::Map<const Eigen::VectorXf>(column.data(), rows_).cast<double>();
  const Vector added = columns.row(count_);
  Vector row = columns.topRows(count_) * added;
  factor.topLeftCorner(count_, count_).triangularView<Eigen::Lower>().solveInPlace(row);
  const double ridge = ridge_share * static_cast<double>(rows_);  // columns of numbers below 1
  const double pivot = std::sqrt(std::max(added.squaredNorm() + ridge - row.squaredNorm(), ridge));
  factor.row(count_).head(count_) = row;
  factor(count_, count_) = pivot;
  solved(count_) = (added.dot(vector(y_)) - row.dot(solved.head(count_))) / pivot;
  ++count_;
}

std::vector<double> GrowingFit::weights() const {
  const Eigen::Map<const Rows> factor(factor_.data(), capacity_, capacity_);
  Vector w = Eigen::Map<const Vector>(solved_.data(), count_);
  factor.topLeftCorner(count_, count_).triangularView<Eigen::Lower>().transpose().solveInPlace(w);
  return {w.begin(), w.end()};
}

std::vector<float> GrowingFit::residual(std::span<const double> w) const {
  const Eigen::Map<const Rows> columns(columns_.data(), capacity_, rows_);
  const Eigen::VectorXf rest = (vector(y_) - columns.topRows(count_).transpose() * vector(w)).cast<float>();
  return {rest.begin(), rest.end()};
}

}  // namespace kvbench::methods
