// SPDX-License-Identifier: Apache-2.0
// Attention, and the tokens that methods keep of it.
#pragma once

#include <span>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/series.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::report {

/// The exact attention of one query head, and the tokens that methods keep of it. `files`: the raw results with their
/// entries; of another trace: no figure.
std::vector<Block> attention_figure(const ReplaySection& section, const ReplayPart& part,
                                    const std::vector<Series>& all, std::span<const compare::QueryResults* const> files,
                                    const trace::Reader& reader);

}  // namespace kvbench::report
