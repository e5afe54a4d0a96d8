// SPDX-License-Identifier: Apache-2.0
// Series (a method with parameters over its budgets) and their figures.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document.hpp>
#include <kvbench/report/report_input.hpp>

namespace kvbench {

struct Series {
  std::string method, params;
  std::string kind;        ///< "eviction", "merging", ...; "own": entries from a file; "other": not in the registry
  bool reference = false;  ///< exact, random, oracle-topk
  int style = 0;
  std::vector<const ReplayRow*> rows;    ///< over all layers, smallest budget first, including rows that are not ok
  std::vector<const ReplayRow*> layers;  ///< per layer

  std::string name() const { return params.empty() ? method : method + " " + params; }
};

/// The series of a section, in the order of the CSV.
std::vector<Series> series_of(const ReplaySection& section);

/// Budgets as given, smallest first.
std::vector<std::string> budgets_of(const ReplaySection& section);

/// Whether there are more lines than a reader can distinguish in one drawing: then one drawing per kind or per method.
bool many(const std::vector<Series>& all);

/// Error against budget, error against bytes, recall against budget, as far as they have points.
std::vector<Block> curve_figures(const std::vector<Series>& all, const std::vector<std::string>& budgets);

/// Error by method and layer, one map per budget.
std::vector<Block> layer_figures(const std::vector<Series>& all, const std::vector<std::string>& budgets);

}  // namespace kvbench
