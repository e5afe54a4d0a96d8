// SPDX-License-Identifier: Apache-2.0
// Error against cost.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/series.hpp>

namespace kvbench::report {

/// Error against bytes held and against bytes read per query, with the frontier of each.
Figure cost_figure(const std::vector<Series>& all, const std::string& title);

}  // namespace kvbench::report
