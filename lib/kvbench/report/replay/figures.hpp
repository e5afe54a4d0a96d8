// SPDX-License-Identifier: Apache-2.0
// The figures of a section of a replay, and the table of methods by budgets: a file each. All are of what ranks the
// methods (figure_of()), except those of single queries.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::report {

// The titles of these three end in `of_part`.

/// One row per method at the main budget of each kind (main_budgets). Without drawings where there are no errors.
Figure error_figure(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& of_part);

/// One line per method against its bytes, for each kind of budget with several budgets: held for limits of the memory,
/// read for limits of reads, both for other budgets. Without drawings where no kind has several.
Figure cost_figure(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& of_part);

/// The figure (figure_of()) of each series at each budget, for LaTeX: in ascending order of the error at the budget
/// nearest to a quarter, references last. Of a budget whose rows were tested the lowest error is bold, those not
/// distinguishable from it are underlined, and those that were not tested against it have a question mark. `part`: of
/// the title; may be empty. No columns where no two series have errors.
DocTable budget_table(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& part);

/// Error by method and layer, one map per budget.
std::vector<Block> layer_figures(const std::vector<Series>& all, const std::vector<Budget>& budgets);

/// Error by layer and query head, one folded map per row.
std::vector<Block> head_figures(const ReplayPart& part);

/// The distribution of errors of single queries and their course along the text, at one budget of each kind. `files`:
/// raw results, opened for rel_err.
std::vector<Block> query_figures(const ReplaySection& section, const ReplayPart& part, const std::vector<Series>& all,
                                 std::span<const compare::QueryResults* const> files);

/// The exact attention of one query head, and the tokens that methods keep of it. `files`: the raw results with their
/// entries; of another trace: no figure.
std::vector<Block> attention_figure(const ReplaySection& section, const ReplayPart& part,
                                    const std::vector<Series>& all, std::span<const compare::QueryResults* const> files,
                                    const trace::Reader& reader);

}  // namespace kvbench::report
