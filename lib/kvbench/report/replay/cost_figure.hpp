// SPDX-License-Identifier: Apache-2.0
// Errors of all methods at one budget, and against what they hold and read.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/series.hpp>

namespace kvbench::report {

// Both are of what ranks the methods (figure_of()); their titles end in `of_part`.

/// One row per method at the main budget of each kind (main_budgets). Without drawings where there are no errors.
Figure error_figure(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& of_part);

/// One line per method against its bytes, for each kind of budget with several budgets: held for limits of the memory,
/// read for limits of reads, both for other budgets. Without drawings where no kind has several.
Figure cost_figure(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& of_part);

}  // namespace kvbench::report
