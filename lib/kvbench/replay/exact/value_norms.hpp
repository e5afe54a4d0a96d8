// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <Eigen/Dense>

#include <kvbench/kernels/view.hpp>

namespace kvbench::replay {

/// Norms of the value matrix over a moving range of tokens, from its Gram matrix in fp64: ranges that grow or slide
/// token by token cost one rank-one update each.
class ValueNorms {
 public:
  /// `values` is [n, dv] row-major and must outlive this object.
  ValueNorms(std::span<const float> values, Index dv);

  /// Sets the range to [first, last). Both ends may only move forward.
  void move_to(Index first, Index last);

  /// |V|_op by power iteration, started from the vector of the previous range, to 1e-9 relative change.
  double operator_norm();
  double frobenius_norm() const;

 private:
  void update(Index token, double sign);

  std::span<const float> values_;
  Index dv_;
  Index first_ = 0, last_ = 0;
  Eigen::MatrixXd gram_;
  Eigen::VectorXd start_;   ///< a vector with components in every direction
  Eigen::VectorXd vector_;  ///< iterate
};

}  // namespace kvbench::replay
