// SPDX-License-Identifier: Apache-2.0
// Errors by depth.
#pragma once

#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// Growth of errors with depth, additivity, and sensitivity per layer, as far as the rows have them.
std::vector<Block> depth_blocks(const EvalSection& section);

}  // namespace kvbench::report
