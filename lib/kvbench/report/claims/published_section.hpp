// SPDX-License-Identifier: Apache-2.0
// Claims of the paper with their verdicts, and published numbers next to the rows that they are compared with.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/table_kind.hpp>

namespace kvbench::report {

/// A claim of a paper, and the rows that its numbers are compared with.
struct Published {
  using Filter =
      std::vector<std::pair<std::string, std::string>>;  ///< column = value: run, method, params, budget, layer, ...
  std::string claim;                                     ///< as in the table of claims
  /// the number as printed in the paper, or a note that it prints none; a row may have its own column `paper`
  std::string paper;
  std::string metric;  ///< column of the CSV, such as rel_err_mean
  /// Where a filter does not name layer, kv_head, head or query, they are `all`. A filter that names a `measure`
  /// applies to the table of measures and selects the mean over all layers and heads.
  std::vector<Filter> rows;
  std::string why;  ///< possible reasons for differences
};

/// The claims with their verdicts and tests; published numbers next to rows of replays, and next to means of measures
/// over heads.
std::vector<Block> published_blocks(std::span<const Published> published, const ReportTables& tables);

}  // namespace kvbench::report
