// SPDX-License-Identifier: Apache-2.0
// Errors by query head.
#pragma once

#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/sections.hpp>

namespace kvbench::report {

/// Error by layer and query head, one folded map per row.
std::vector<Block> head_figures(const ReplayPart& part);

}  // namespace kvbench::report
