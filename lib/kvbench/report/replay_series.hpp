// SPDX-License-Identifier: Apache-2.0
// A method with its parameters over its budgets, and the figures of several of them.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document.hpp>
#include <kvbench/report/report_input.hpp>

namespace kvbench {

struct Series {
  std::string method, params;
  std::string kind;        ///< "eviction", "merging", ...; "own" for entries from a file, "other" for names that the registry lacks
  bool reference = false;  ///< exact, random, oracle-topk
  int style = 0;
  std::vector<const ReplayRow*> rows;    ///< over all layers, smallest budget first; not ok ones too
  std::vector<const ReplayRow*> layers;  ///< by layer

  std::string name() const { return params.empty() ? method : method + " " + params; }
};

/// Of methods that were asked for, in the order of the CSV.
std::vector<Series> series_of(const ReplaySection& section);

/// Budgets as written, smallest first.
std::vector<std::string> budgets_of(const ReplaySection& section);

/// More lines than a reader can tell apart in one drawing: one drawing a kind, or a method.
bool many(const std::vector<Series>& all);

/// Error against budget, error against bytes, recall against budget; those that have points.
std::vector<Block> curve_figures(const std::vector<Series>& all, const std::vector<std::string>& budgets);

/// Error by method and layer, a map a budget.
std::vector<Block> layer_figures(const std::vector<Series>& all, const std::vector<std::string>& budgets);

}  // namespace kvbench
