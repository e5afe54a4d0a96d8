// SPDX-License-Identifier: Apache-2.0
// A probability statement about each query of a subject, tried over seeds. Queries that share a sketch are no independent
// trials: failures are counted per query, and the row shows the worst one.
#pragma once

#include <span>
#include <vector>

#include <kvbench/bounds/check.hpp>

namespace kvbench {

struct QueryTrials {
  double literal = NAN, tight = NAN, data = NAN;  ///< as in CheckRow
  double bound = NAN;                             ///< the one that decides
  double trivial = NAN;
  std::vector<double> errors;  ///< by seed

  bool vacuous() const { return bound >= trivial; }
};

/// Fills bounds, errors, failures and the p-value, which is adjusted by Holm for the number of queries whose bound is not
/// vacuous. The row shows the one of these with the most failures, ties: the largest 99 % quantile over its bound; where all
/// bounds are vacuous the one that is least so.
void fill_worst_query(CheckRow& row, std::span<const QueryTrials> queries, double allowed);

}  // namespace kvbench
