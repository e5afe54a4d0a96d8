// SPDX-License-Identifier: Apache-2.0
// A probability statement about each query of a subject, tested over seeds. Queries that share a sketch are not
// independent trials: failures are counted for each query separately, and the row shows the worst query.
#pragma once

#include <span>
#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

struct QueryTrials {
  double literal = NAN, tight = NAN, data = NAN;  ///< as in CheckRow
  double bound = NAN;                             ///< the one that errors are compared with
  double trivial = NAN;
  std::vector<double> errors;  ///< one per seed

  bool vacuous() const { return bound >= trivial; }
};

/// Adds the row of a theorem with bounds, errors and failures of one query; judge() adjusts its p-value for the number
/// of queries. The row shows the query with the most failures. Without failures it shows, of the queries whose bound is
/// not vacuous, the one with the largest ratio of the 99 % quantile to the bound; where all bounds are vacuous, the one
/// with the smallest ratio of bound to trivial bound. Queries whose bound is not a number are left out; where there is
/// no other, the row was not tested. `text` comes before the number of queries.
CheckRow& add_theorem(CheckContext& context, const Statement& statement, std::span<const QueryTrials> queries,
                      double allowed, std::string text = "");

}  // namespace kvbench::bounds
