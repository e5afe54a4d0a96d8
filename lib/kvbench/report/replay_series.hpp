// SPDX-License-Identifier: Apache-2.0
// Series (a method with parameters over its budgets) and their figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/document.hpp>
#include <kvbench/report/report_input.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

struct Series {
  std::string method, params;
  std::string kind;        ///< "eviction", "merging", ...; "own": entries from a file; "other": not in the registry
  bool reference = false;  ///< exact, random, oracle-topk
  int style = 0;           ///< colour and marker in all figures
  std::vector<const ReplayRow*> rows;    ///< over all layers, smallest budget first, including rows that are not ok
  std::vector<const ReplayRow*> layers;  ///< per layer

  std::string name() const { return params.empty() ? method : method + " " + params; }
};

/// The series of a part, in the order of the CSV. Those on a frontier have the first styles, in ascending order of the error.
std::vector<Series> series_of(const ReplayPart& part);

/// What figures show of the series and budgets of a part.
struct Shown {
  std::vector<Series>
      series;  ///< at most 100 and the references, those on a frontier and with the lowest errors; at `budgets` only
  std::vector<std::string> budgets;  ///< at most 12, evenly spaced
  std::string note;                  ///< a sentence that says what is left out; "" where nothing is
};
Shown shown_of(const std::vector<Series>& all, const std::vector<std::string>& budgets);

/// Budgets as given, smallest first.
std::vector<std::string> budgets_of(const ReplayPart& part);

/// The budget of each kind (tokens, memory, fast memory, bytes read) that is nearest to a quarter.
std::vector<std::string> main_budgets(const std::vector<std::string>& budgets);

/// The rows that no other row beats by a lower error at no more than equal_cost times its cost, by ascending cost. References and rows
/// whose mean is not estimable are not compared.
std::vector<const ReplayRow*> frontier_of(const std::vector<Series>& all, double ReplayRow::*cost);

/// Error against bytes held and against bytes read per query, with the frontier of each.
Figure cost_figure(const std::vector<Series>& all, const std::string& title);

/// Error by method and layer, one map per budget.
std::vector<Block> layer_figures(const std::vector<Series>& all, const std::vector<std::string>& budgets);

/// Error by layer and query head, one folded map per row.
std::vector<Block> head_figures(const ReplayPart& part);

/// The distribution of errors of single queries and their course along the text, at one budget of each kind. `files`: raw results,
/// opened for rel_err.
std::vector<Block> query_figures(const ReplaySection& section, const ReplayPart& part, const std::vector<Series>& all,
                                 std::span<const QueryResults* const> files);

/// The exact attention of one query head, and the tokens that methods keep of it. `files`: the raw results with their entries; of
/// another trace: no figure.
std::vector<Block> attention_figure(const ReplaySection& section, const ReplayPart& part,
                                    const std::vector<Series>& all, std::span<const QueryResults* const> files,
                                    const trace::Reader& reader);

}  // namespace kvbench
