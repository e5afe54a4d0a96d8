// SPDX-License-Identifier: Apache-2.0
// Makes a report from CSV files that kvbench wrote.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/csv_reader.hpp>
#include <kvbench/report/document.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

/// A claim of a paper, and the rows that its numbers are compared with.
struct Published {
  using Filter =
      std::vector<std::pair<std::string, std::string>>;  ///< column = value: run, method, params, budget, layer, ...
  std::string claim;                                     ///< as in the table of claims
  std::string
      paper;  ///< the number as printed in the paper, or a note that it prints none; a row may have its own column `paper`
  std::string metric;  ///< column of the CSV, such as rel_err_mean
  /// Where a filter does not name layer, kv_head, head or query, they are `all`. A filter that names a `measure` applies to the
  /// table of measures and selects the mean over all layers and heads.
  std::vector<Filter> rows;
  std::string why;  ///< possible reasons for differences
};

struct ReportOptions {
  std::string title = "kvbench report", description;
  std::vector<Published> published;
  std::vector<const QueryResults*> raw;      ///< raw results, opened for rel_err: add figures of single queries
  std::vector<const trace::Reader*> traces;  ///< with raw results: add maps of attention and kept tokens
};

/// Takes tables of replays and sweeps, of checks (`kvbench validate`), of measures and of claims, in any order and number; the kind is
/// recognised from the columns. Columns are found by name, and additional columns are ignored. Throws Error with file, line and
/// column where a table cannot be used.
Document make_report(std::span<const CsvTable> tables, const ReportOptions& options);

}  // namespace kvbench
