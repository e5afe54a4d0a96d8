// SPDX-License-Identifier: Apache-2.0
// Series: a method with parameters over its budgets.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/replay/sections.hpp>

namespace kvbench::report {

struct Series {
  std::string method, params;
  std::string kind;        ///< methods::family_of()
  bool reference = false;  ///< compare::is_baseline(), or calibrated on itself: not ranked
  int style = 0;           ///< in all figures: the colour is that of the family; marks::own_style()
  int rank = 0;            ///< of those that are no references: on a frontier first, by the lowest error
  std::vector<const ReplayRow*> rows = {};  ///< over all layers, smallest budget first, including rows that are not ok
  std::vector<const ReplayRow*> layers = {};  ///< per layer

  std::string name() const { return params.empty() ? method : method + " " + params; }
};

/// The figure that all rows of the series show (ReplayPart::ranked_by).
const replay::RankingFigure& figure_of(const std::vector<Series>& all);

/// The series of a part, in the order of the CSV.
std::vector<Series> series_of(const ReplayPart& part);

/// What figures show of the series and budgets of a part.
struct Shown {
  /// at most 100 and the references, those on a frontier and with the lowest errors; at `budgets` only
  std::vector<Series> series;
  std::vector<Budget> budgets;  ///< at most 12, evenly spaced
  std::string note;             ///< a sentence that says what is left out; "" where nothing is
};
Shown shown_of(const std::vector<Series>& all, const std::vector<Budget>& budgets);

/// Budgets as given, smallest first.
std::vector<Budget> budgets_of(const ReplayPart& part);

/// The rows that no other row beats by a lower error at no more than equal_cost times its cost, by ascending cost.
/// References and rows whose mean is not estimable are not compared.
std::vector<const ReplayRow*> frontier_of(const std::vector<Series>& all, double (replay::Costs::*cost)() const);

}  // namespace kvbench::report
