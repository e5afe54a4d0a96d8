// SPDX-License-Identifier: Apache-2.0
// The errors of one answer against the exact one. Differences are formed and summed in fp64.
#pragma once

#include <span>

#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// The exact results of one query row.
struct RowTruth {
  std::span<const float> out;  ///< [dv] z*
  double log_sum_exp = 0;      ///< ln Z
  double p_norm = 0;           ///< |p|_2
  double v_op = 0, v_fro = 0;  ///< norms of V over the tokens up to the query
};

/// One row of an AttentionState on the host: numerator = num * exp(max), denominator = den * exp(max).
struct RowState {
  double max = 0, den = 0;
  std::span<const float> num;  ///< [dv]
};

/// Component c of the answer, num / den: 0 for an empty answer (num = den = 0), infinite where the denominator
/// underflows in fp32 and the numerator does not.
inline double component(const RowState& answer, std::size_t c) {
  return answer.den == 0 && answer.num[c] == 0 ? 0 : answer.num[c] / answer.den;
}

/// |z - z*|^2 and |z*|^2, for Frobenius norms over queries.
struct SquaredError {
  double difference = 0, exact = 0;
};

/// Sets rel_err, relerr_balancekv, err_bound_* and log_z_err. Where the exact output is zero, relative errors are 0 for
/// an exact answer and infinite otherwise. Returns the squares from which they are computed.
SquaredError set_errors(const RowTruth& truth, const RowState& answer, MetricRow& row);

/// Sets mass_err and dir_err. `plain` is the state over H only: the entries with their own token's key and value and
/// unit weights. With T the other tokens: z - z* = (w_hat - w)(mu_T - mu_H) + w_hat (mu_T_hat - mu_T). NaN where H is
/// empty.
void set_decomposition(const RowTruth& truth, const RowState& answer, const RowState& plain, MetricRow& row);

}  // namespace kvbench::replay
