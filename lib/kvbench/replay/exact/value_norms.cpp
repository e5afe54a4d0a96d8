// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/value_norms.hpp>

#include <algorithm>
#include <cmath>

namespace kvbench::replay {
namespace {

/// A unit vector without the symmetries of real data: a vector with equal or opposite coordinates can be orthogonal to
/// the dominant direction.
Eigen::VectorXd irregular_direction(Index dv) {
  Eigen::VectorXd direction(dv);
  for (Index c = 0; c < dv; ++c) direction[c] = 1.5 + std::sin(static_cast<double>(c * c + c + 1));
  return direction.normalized();
}

}  // namespace

ValueNorms::ValueNorms(std::span<const float> values, Index dv)
    : values_(values),
      dv_(dv),
      gram_(Eigen::MatrixXd::Zero(dv, dv)),
      start_(irregular_direction(dv)),
      vector_(Eigen::VectorXd::Zero(dv)) {}

void ValueNorms::update(Index token, double sign) {
  const Eigen::Map<const Eigen::VectorXf> row(values_.data() + token * dv_, dv_);
  gram_.selfadjointView<Eigen::Lower>().rankUpdate(row.cast<double>(), sign);
}

void ValueNorms::move_to(Index first, Index last) {
  constexpr Index block = 256;  // one matrix product per block, because the first range is the whole context
  for (; last_ + block <= last; last_ += block) {
    const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> rows(
        values_.data() + last_ * dv_, block, dv_);
    gram_.selfadjointView<Eigen::Lower>().rankUpdate(rows.cast<double>().transpose().eval());
  }
  for (; last_ < last; ++last_) update(last_, 1);
  for (; first_ < first; ++first_) update(first_, -1);
}

double ValueNorms::operator_norm() {
  const auto symmetric = gram_.selfadjointView<Eigen::Lower>();
  // Components in every direction, so that a new dominant direction is found.
  vector_ += 0.1 * start_;
  double value = 0;
  for (int i = 0; i < 1000; ++i) {
    Eigen::VectorXd next = symmetric * vector_;
    const double norm = next.norm();
    if (norm == 0) break;  // no values
    const double change = std::abs(norm - value);
    value = norm;
    vector_ = next / norm;
    if (change <= 1e-9 * norm) break;
  }
  return std::sqrt(value);
}

double ValueNorms::frobenius_norm() const { return std::sqrt(std::max(0.0, gram_.trace())); }

}  // namespace kvbench::replay
