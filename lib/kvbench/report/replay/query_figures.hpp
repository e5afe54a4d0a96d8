// SPDX-License-Identifier: Apache-2.0
// Errors of single queries.
#pragma once

#include <span>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/series.hpp>

namespace kvbench::report {

/// The distribution of errors of single queries and their course along the text, at one budget of each kind. `files`:
/// raw results, opened for rel_err.
std::vector<Block> query_figures(const ReplaySection& section, const ReplayPart& part, const std::vector<Series>& all,
                                 std::span<const compare::QueryResults* const> files);

}  // namespace kvbench::report
