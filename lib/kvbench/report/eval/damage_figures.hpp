// SPDX-License-Identifier: Apache-2.0
// Damage to the output against bytes.
#pragma once

#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// KL, nll and exact match against bytes, one figure per task.
std::vector<Figure> damage_figures(const EvalSection& section);

}  // namespace kvbench::report
