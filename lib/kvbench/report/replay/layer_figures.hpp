// SPDX-License-Identifier: Apache-2.0
// Errors by layer.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/series.hpp>

namespace kvbench::report {

/// Error by method and layer, one map per budget.
std::vector<Block> layer_figures(const std::vector<Series>& all, const std::vector<Budget>& budgets);

}  // namespace kvbench::report
