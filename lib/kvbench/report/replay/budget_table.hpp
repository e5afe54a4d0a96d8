// SPDX-License-Identifier: Apache-2.0
// Methods by budgets, for papers.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/series.hpp>

namespace kvbench::report {

/// The figure (figure_of()) of each series at each budget, for LaTeX: in ascending order of the error at the budget
/// nearest to a quarter, references last. Of a budget whose rows were tested the lowest error is bold, those not
/// distinguishable from it are underlined, and those that were not tested against it have a question mark. `part`: of
/// the title; may be empty. No columns where no two series have errors.
DocTable budget_table(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& part);

}  // namespace kvbench::report
