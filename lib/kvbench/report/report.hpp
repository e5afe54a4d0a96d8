// SPDX-License-Identifier: Apache-2.0
// From the CSV files that kvbench writes to a report for readers.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/report/csv_reader.hpp>
#include <kvbench/report/document.hpp>

namespace kvbench {

/// A number that a paper prints, and where ours stands.
struct Published {
  using Filter = std::vector<std::pair<std::string, std::string>>;  ///< column = value: run, method, params, budget, layer, ...
  std::string claim;
  std::string paper;   ///< the number as the paper prints it, or that it prints none
  std::string metric;  ///< column of the CSV, such as rel_err_mean
  /// Layer, kv_head, head and query are `all` where a filter does not name them. A filter that names a `measure` is of the
  /// table of measures, and means the mean over all its layers and heads.
  std::vector<Filter> rows;
  std::string why;  ///< why ours may differ
};

struct ReportOptions {
  std::string title = "kvbench report", description;
  std::vector<Published> published;
};

/// Tables of replays and sweeps, of checks (`kvbench validate`) and of measures, in any order and number; which is which shows
/// in their columns. Columns are found by name, and others than those needed may be there. Throws Error that names file, line
/// and column where one cannot be used.
Document make_report(std::span<const CsvTable> tables, const ReportOptions& options);

}  // namespace kvbench
