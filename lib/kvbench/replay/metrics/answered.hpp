// SPDX-License-Identifier: Apache-2.0
// What metrics are computed from: the answer to one query of one query head, the exact one, and figures of both that
// several metrics share. lib/kvbench/replay/measure fills it in.
#pragma once

#include <cmath>
#include <span>

#include <kvbench/kernels/view.hpp>

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

/// Squared norms over the components of an answer, in fp64.
struct SquaredNorms {
  double difference = 0;  ///< |z - z*|^2
  double exact = 0;       ///< |z*|^2
  double clamped = 0;     ///< |max(z*, 1e-8)|^2
  /// Of the two terms of z - z* = (w_hat - w)(mu_T - mu_H) + w_hat (mu_T_hat - mu_T); NaN where H is empty. H: the
  /// entries with their own token's key and value and unit weights; T: the other tokens.
  double mass = NAN, direction = NAN;
};

/// The kept tokens among those that the method may drop, and as many best ones by exact logit.
struct Overlap {
  Index kept = 0;                  ///< 0: recall does not apply
  Index common = 0;                ///< kept tokens that are among the best
  double mass = 0, best_mass = 0;  ///< exact attention to the kept tokens, and to the best ones
};

struct Answered {
  RowTruth exact;
  RowState answer;
  SquaredNorms squares;
  Overlap overlap;
  bool plain = false;  ///< every entry is an original token with unit weights
};

}  // namespace kvbench::replay
